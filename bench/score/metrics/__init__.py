"""Numbers in, numbers out: no files, no models, no torch."""
