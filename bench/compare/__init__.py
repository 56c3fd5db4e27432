"""Everything that ``bench compare`` adds to means: how sure they are, what papers printed, what
they cost, and what must not be compared."""
