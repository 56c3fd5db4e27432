"""A paper's table, run again: which runs it means, what they need, what they would take, and how they turned out."""
