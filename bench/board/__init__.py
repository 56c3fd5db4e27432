"""What a version of the leaderboards says: rows, verdicts, grades, the answer, and what changed. Pure data, before any page is drawn."""
