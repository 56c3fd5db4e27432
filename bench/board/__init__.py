"""What a version of the leaderboards says: rows, verdicts, the answer, and what changed. Pure data,
before any page is drawn."""
