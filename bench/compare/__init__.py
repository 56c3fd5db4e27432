"""From records to tables and verdicts: rows, intervals, the rule, and the words for all of them.

Not here: a model, or a page; commands print these tables, and the board draws them.
"""
