"""Score tables, one run and what was verified, each as Grids or as data."""
