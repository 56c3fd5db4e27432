"""From sentences to scores: encoding, suites, metrics."""
