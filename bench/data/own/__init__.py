"""Evaluation data in a user's own file: rated pairs of sentences, or texts with a class each.

``naming`` finds the file that ``--suite`` means, ``columns`` its columns; ``items`` checks its rows
and makes the data that the suites score. docs/own-data.md is the user's page.
"""
