"""What ``tools/soak.py`` calls growing: made samples; the runs themselves are for hand."""

from __future__ import annotations

import random

from soak import Sample, grown


def samples(memory: float = 0.0, files: float = 0.0, threads: float = 0.0) -> list[Sample]:
    """300 samples that grow by so much a run; every few fall into the next run, which has files open."""
    draw = random.Random(3)
    return [
        Sample(
            i,
            400 + memory * i,
            int(5 + files * i) + draw.choice((0, 0, 1, 7)),
            int(2 + threads * i),
        )
        for i in range(1, 301)
    ]


def test_what_grows_is_told_and_what_is_open_for_a_moment_is_not() -> None:
    assert grown(samples()) == []
    assert grown(samples(memory=0.02)) == [] and grown(samples(memory=0.2)) == [
        "30.0 MB more memory"
    ]
    assert grown(samples(files=0.02)) == ["3 more files"]
    assert grown(samples(threads=0.02)) == ["3 more threads"]
