"""Every reader of files that others write, on files that were changed at random: an error of ours
or an answer, never a traceback, soon, and within bounded memory. ``tools/fuzz.py`` makes any number
of changes.

``BENCH_FUZZ_CHANGES`` (100,000) and ``BENCH_FUZZ_SECONDS`` (30, of the processor) bound the changes
of all readers together. ``BENCH_FUZZ_START`` (0): the number of the first change of each.
``pytest -s`` prints how many there were.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fuzz import MEMORY, fuzz, in_memory, peak, prepared, read
from fuzz_readers import CASES, READERS, Reader

SECONDS = int(os.environ.get("BENCH_FUZZ_SECONDS", 30))
CHANGES = int(os.environ.get("BENCH_FUZZ_CHANGES", 100_000))
START = int(os.environ.get("BENCH_FUZZ_START", 0))


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one.name)
def test_undamaged_files_are_read(reader: Reader, tmp_path: Path) -> None:
    for content in reader.contents:
        path = prepared(reader, tmp_path) / reader.file
        path.write_bytes(content)
        reader.read(path)


@pytest.mark.parametrize("name", CASES)
def test_inputs_that_once_crashed_are_one_line(name: str, tmp_path: Path) -> None:
    (reader,) = [one for one in READERS if one.name == name]
    for content in CASES[name]:
        assert read(reader, content, prepared(reader, tmp_path)) is None


@pytest.mark.nightly
@pytest.mark.slow(seconds=30)
def test_no_change_gets_through_a_reader(tmp_path: Path) -> None:
    before = peak()
    with in_memory(tmp_path) as folder:
        counts, found = fuzz(
            READERS, folder, CHANGES // len(READERS), SECONDS / len(READERS), START
        )
    each = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    print(f"\n{sum(counts.values()):,} changes: {each}; {peak() - before:.0f} MB more")
    assert found == [], "\n".join(found)
    assert len(counts) == len(READERS) and min(counts.values()) > 10
    assert peak() - before < MEMORY
