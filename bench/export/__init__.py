"""A run's model as a folder that other people's tools load.

Not here: a way to score it; the tools have their own.
"""

from bench.export.card import Exported
from bench.export.model import describe_export, write_model

__all__ = ["Exported", "describe_export", "write_model"]
