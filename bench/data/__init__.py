"""Evaluation sets, training text and people's own files: found, fetched, read and checked.

Not here: a model, or how a text is scored.
"""
