"""Evaluation sets and training text: finding, fetching, reading and checking them."""
