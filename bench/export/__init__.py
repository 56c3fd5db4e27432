"""A run as files that other people's tools load.

Its model becomes a folder, here or on the hub, and its scores become a file.
"""

from bench.export.exported import Exported
from bench.export.results import FORMATS
from bench.export.stored import (
    FOLDERS,
    ModelExport,
    Pushed,
    describe_export,
    push_model,
    write_model,
    write_scores,
)

__all__ = [
    "FOLDERS",
    "FORMATS",
    "Exported",
    "ModelExport",
    "Pushed",
    "describe_export",
    "push_model",
    "write_model",
    "write_scores",
]
