"""Evaluation data in a user's own file: rated pairs of sentences, or texts with a class each.

``naming`` says which file ``--suite`` means, ``columns`` what its columns are, ``items`` checks its
rows and makes data of them that the suites score. docs/own-data.md is the user's page.
"""
