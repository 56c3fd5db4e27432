"""From vectors to scores: suites, their metrics, and how far each item moves a score.

Not here: a method, a verdict, or anything that trains.
"""
