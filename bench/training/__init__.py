"""The one training loop that every method runs in, its checkpoints and states.

Not here: a loss, a suite, or where a run is stored.
"""
