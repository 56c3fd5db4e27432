"""The one training loop that every method runs in."""

from bench.training.horizon import total_steps
from bench.training.loop import fit
from bench.training.optimizer import learning_rate_at

__all__ = ["fit", "learning_rate_at", "total_steps"]
