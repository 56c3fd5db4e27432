"""What many runs say together: numbers in, numbers out."""
