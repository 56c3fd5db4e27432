"""From records to tables and verdicts: rows, intervals, the rule, and the words for all of them.

Not here: a model, or a page; what it makes is printed by any command and drawn by the board.
"""
