"""The benchmark harness for sentence embeddings: train a method, score it, keep the record, compare."""

__version__ = "0.1.0"
