"""Files that travel in an export: each runs without this package, next to the weights that it reads
(docs/evaluate.md).

They import torch, safetensors, transformers and sentence-transformers, nothing of ``bench`` or
``methods``, and nothing relative.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
