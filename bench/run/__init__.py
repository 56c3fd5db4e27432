"""From a request to records: options, plans, sessions, execution here or elsewhere, searches.

Not here: a comparison of runs, and how anything looks.
"""
