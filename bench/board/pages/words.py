"""Texts of methods and recipes as pages write them."""

from __future__ import annotations


def plain_text(text: str) -> str:
    """Return a text without the backticks around code, for places without a type for code."""
    return text.replace("`", "")
