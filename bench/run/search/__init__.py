"""A search for recipe values: its space, its trials, and the recipe files that come out.

Spaces are ``[[space]]`` tables in recipe files: a method's own in ``recipes/<method>.toml`` next to
it, the common ones in the backbones' file. A method's own bounds of a key replace the common ones.
::

    [[space]]
    # setting, backbone, variant: a name, a list of names, or left out for all recipes
    setting = "unsupervised"
    backbone = ["roberta-base", "roberta-large"]
    [space.values]
    learning_rate = { values = [1e-5, 3e-5], source = "the paper's grid" }
    temperature = { low = 0.02, high = 0.2, scale = "log", source = "..." }
    # from a quarter of the recipe's own value to four times that, on a log scale
    queue_size = { factor = 4, source = "..." }

``NAME/search.json`` has all trials with their values and results. Any number of processes share it,
and boards and figures read it. ``NAME/trials/METHOD/003/`` holds the training of a trial, a run
without scores, and the lock of the process that works on it. After a kill the same command
continues the trial.
"""
