"""Published leaderboards: versions that never change, built from runs and printed results."""
