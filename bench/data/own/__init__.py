"""Evaluation data in a user's own file: rated pairs of sentences, or texts with a class each.

``naming`` says which file and which columns ``--suite`` means, ``table`` reads the file, ``items``
checks its rows and makes data of them that the suites score. docs/evaluate.md is the user's page.
"""
