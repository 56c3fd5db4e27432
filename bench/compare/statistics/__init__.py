"""Statistics of many runs together: numbers in, numbers out."""
