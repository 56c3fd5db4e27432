"""Two made-up data sets on a server of this machine, for works that fetch."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from hub import StandInHub

    from bench.data.sets import DataSet, Source

VOCABULARY = (
    "a man plays the guitar woman reads book in park dog runs fast over green grass child sleeps "
    "house near sea"
)


def sentences(count: int) -> list[str]:
    """Return random sentences of 2 to 12 words, always the same."""
    words = VOCABULARY.split()
    draw = random.Random(6)
    return [" ".join(draw.choices(words, k=draw.randint(2, 12))) for _ in range(count)]


@contextlib.contextmanager
def data_world() -> Iterator[list[DataSet]]:
    """Serve two sets that no one else knows, on this machine.

    One is in an archive, one in four forms that are converted.
    """
    from hub import StandInHub

    from bench.data.sets import ANY, folder, pending
    from bench.data.sets import fetch as fetching

    rows = [(str(i % 7), line) for i, line in enumerate(sentences(3000))]
    plain = "".join(f"{label}\t{text}\n" for label, text in rows).encode()
    forms = source_forms(plain, rows)
    packed = made_set("PACKED", ["a.txt", "b.txt"], plain, rows)
    converted = made_set("CONVERTED", [f"{i}.txt" for i in range(len(forms))], plain, rows)
    sets = {"PACKED": packed, "CONVERTED": converted}
    with StandInHub() as hub, contextlib.ExitStack() as stack:
        sources = {
            "PACKED": serve_archive(hub, packed, plain),
            "CONVERTED": serve_forms(hub, forms),
        }

        def sources_of(data_set: DataSet, text: str = ANY) -> list[Source]:
            return [sources[data_set.name]]

        environment = {
            "BENCH_MIRROR": hub.url,
            "HF_HUB_OFFLINE": "0",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }
        stack.enter_context(mock.patch.dict(os.environ, environment))
        # the hub's client read the variable when it was imported
        stack.enter_context(mock.patch("huggingface_hub.constants.HF_HUB_OFFLINE", False))
        for module in (fetching, folder, pending):
            stack.enter_context(mock.patch.object(module, "sources_of", sources_of))
        stack.enter_context(mock.patch.object(fetching, "data_set", sets.__getitem__))
        yield list(sets.values())


def source_forms(plain: bytes, rows: Sequence[tuple[str, str]]) -> dict[str, list[bytes]]:
    """Return conversion -> the files of a source that it turns into ``plain``."""
    json_lines = [json.dumps({"text": f" {text} ", "cluster": label}) for label, text in rows]
    return {
        "labelled lines": [plain.replace(b"\n", b" \r\n")],
        "JSON lines": ["".join(f"{line}\n" for line in json_lines).encode()],
        "text and labels": [
            "".join(f" {text}\n" for _, text in rows).encode(),
            "".join(f"{label}\n" for label, _ in rows).encode(),
        ],
        "first 2 columns": ["".join(f"{label}\t{text}\tmore\n" for label, text in rows).encode()],
    }


def made_set(
    name: str, paths: Sequence[str], plain: bytes, rows: Sequence[tuple[str, str]]
) -> DataSet:
    """Describe a set with these files, which all have the content ``plain``."""
    from bench.data.sets import ANY, DataFile, DataSet, Form, content_hash

    form = Form(sha256=hashlib.sha256(plain).hexdigest(), bytes=len(plain))
    content = content_hash([list(row) for row in rows])
    files = [
        DataFile(
            path=path, role="table", rows=len(rows), columns=2, content=content, forms={ANY: form}
        )
        for path in paths
    ]
    return DataSet(
        name=name,
        kind="evaluation",
        title=name,
        suites=("clustering",),
        unit="texts",
        items={"test": len(rows)},
        licence="none",
        terms="none",
        source="us",
        cite="us",
        get="ask us",
        homes={ANY: name},
        also=(),
        accept=True,
        files=tuple(files),
    )


def serve_archive(hub: StandInHub, data_set: DataSet, plain: bytes) -> Source:
    """Serve the files of a set in one archive, and return the source."""
    from bench.data.sets import ANY, Source

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for file in data_set.files:
            info = tarfile.TarInfo(f"all/{file.path}")
            info.size = len(plain)
            tar.addfile(info, io.BytesIO(plain))
    hub.serve("raw.githubusercontent.com/owner/packed/c0ffee/all.tar", archive.getvalue())
    return Source(
        name="packed",
        title="",
        site="github",
        repo="owner/packed",
        revision="c0ffee",
        archive="all.tar",
        into="PACKED",
        form=ANY,
        sets=("PACKED",),
    )


def serve_forms(hub: StandInHub, forms: Mapping[str, Sequence[bytes]]) -> Source:
    """Serve files that are converted, and return the source. ``forms``: conversion -> files."""
    from bench.data.sets import ANY, Source, SourcePart

    parts: dict[str, Any] = {}
    for i, (conversion, contents) in enumerate(forms.items()):
        names = tuple(f"{i}-{k}" for k in range(len(contents)))
        for name, content in zip(names, contents, strict=True):
            hub.serve(f"raw.githubusercontent.com/owner/converted/c0ffee/{name}", content)
        parts[f"{i}.txt"] = SourcePart(
            paths=names,
            conversion=conversion,
            sha256=tuple(hashlib.sha256(content).hexdigest() for content in contents),
        )
    return Source(
        name="converted",
        title="",
        site="github",
        repo="owner/converted",
        revision="c0ffee",
        into="CONVERTED",
        form=ANY,
        sets=("CONVERTED",),
        files=parts,
    )
