"""Runs from their options to their records, for the command line and for Python."""
