"""The one training loop that every method runs in."""

from bench.method.optimizer import learning_rate_at
from bench.training.horizon import total_steps
from bench.training.loop import fit, train

__all__ = ["fit", "learning_rate_at", "total_steps", "train"]
