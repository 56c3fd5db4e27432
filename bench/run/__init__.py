"""From what was asked to records: methods, recipes, plans, execution, and the papers' tables run
again.
"""
