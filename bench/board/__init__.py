"""The content of a version of the leaderboards: rows, verdicts, the answer, and what changed.
Pure data, before any page is drawn."""
