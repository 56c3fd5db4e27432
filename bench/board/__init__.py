"""A published version: its content, pages and figures, written by publish, checked by verify.

Not here: a verdict or a sentence that ``bench compare`` does not give, too.
"""
