"""What a comparison says in words: the finding, names, what differs between rows, the legend.

Every form of output takes them from here, and nothing here draws.
"""
