"""Searching for the values of recipes: the same trials, budget, seeds and dev set for every method of one search.

A search is a folder. ``study/study.json`` says what is searched (:mod:`bench.run.search.study`); ``trials/METHOD/003/`` holds a trial:
its values (``trial.json``) and its training, a run without scores. Nothing else is state: who is killed leaves a trial that somebody
else takes up.
"""
