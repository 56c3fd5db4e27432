"""Evaluation sets and training text: where they are found, fetched from, read and checked."""
