"""Rated pairs of a user: scored as those of sts, also with a query and a document in each pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.data.own.items import OwnPairs
from bench.score.suites.sts import LoadedPairs
from bench.score.suites.task import RunPlace, TaskResult, Vectors


@dataclass(frozen=True)
class LoadedOwnPairs(LoadedPairs):
    """Pairs that are scored by the cosines of their vectors."""

    data: OwnPairs

    @property
    def sides(self) -> Mapping[str, Sequence[str]]:
        if self.data.sides is None:
            return {}
        columns = self.data.sentences1, self.data.sentences2
        return dict(zip(self.data.sides, columns, strict=True))

    def score_in(self, place: RunPlace, vectors: Vectors) -> TaskResult:
        if self.data.sides is None:
            return self.score(vectors)
        first, second = (place.sides.get(side, vectors) for side in self.data.sides)
        return self.score_sides(first, second)
