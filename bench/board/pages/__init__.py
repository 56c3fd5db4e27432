"""Pages: of a version, of a run, of a method, and those that are one file."""
