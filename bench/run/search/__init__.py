"""Searching for the values of recipes: the same trials, budget, seeds and dev set for every method of one search."""
