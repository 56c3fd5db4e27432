"""A method that brings its own vectors, such as GloVe's, in the place of a backbone."""

from __future__ import annotations

from typing import ClassVar

from bench.method.contract import Method
from bench.method.recipe import Recipe


class OwnVectors(Method):
    """A method that ignores ``--backbone``: records name ``own_backbone`` in its place."""

    own_backbone: ClassVar[str]

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """Return the sha256 of its vectors' file."""
        return "unknown"


def own_backbone(cls: type[Method]) -> str | None:
    """Return the name of the vectors that a method brings; None if it takes a backbone."""
    return cls.own_backbone if issubclass(cls, OwnVectors) else None
