"""The one training loop that every method runs in."""
