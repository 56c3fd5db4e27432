"""The one training loop that every method runs in."""

from bench.training.loop import fit, learning_rate_at, total_steps

__all__ = ["fit", "learning_rate_at", "total_steps"]
