"""Data sets from their sources: announced, checked, from the next source if one fails, and trusted
on first use if nothing else is possible.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hub import StandInHub

from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.data.corpora import open_corpus_file
from bench.data.sets import (
    ANY,
    DataFile,
    DataFolder,
    DataSet,
    Form,
    Source,
    SourcePart,
    all_sources,
    data_set,
    read_origin,
    unexpected_corpus,
)
from bench.data.sets.fetch import Fetcher

TOKENISED = {"A/one.txt": b"a cat 's\tone dog\nb\tc\n", "A/two.txt": b"x y\tz\n"}
RAW = {"A/one.txt": b"A cat's\tone dog\nB\tC\n", "A/two.txt": b"X Y\tz\n"}
OTHER = {"A/one.txt": b"a cat ' s\tone dog\nb\tc\n", "A/two.txt": b"x y\tz\n"}
TEXT = b"first sentence\nsecond sentence\nthird\n"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _file(path: str, data: bytes) -> DataFile:
    rows = [line.split("\t") for line in data.decode().splitlines()]
    forms = {
        form: Form(sha256=sha(files[path]), bytes=len(files[path]))
        for form, files in (("tokenised", TOKENISED), ("raw", RAW))
    }
    known = {"role": "pairs", "rows": len(rows), "columns": 2}
    return DataFile(path=path, forms=forms, **known)


def _set(name: str, kind: str, homes: dict[str, str], *files: DataFile, **more: Any) -> DataSet:
    usual = {"title": name, "suites": (), "unit": "sentences", "items": {"test": 3}}
    usual |= {"licence": "of nobody", "terms": "the terms of one", "source": "us", "cite": "us"}
    return DataSet(name=name, kind=kind, homes=homes, files=files, **usual | {"get": "ask"} | more)


HOMES = {"tokenised": "moses", "raw": "raw"}
ONE = _set(
    "ONE",
    "evaluation",
    HOMES,
    *(_file(*one) for one in TOKENISED.items()),
    also=("archive",),
    unit="pairs",
    suites=("sts",),
    accept=True,
)
TEXT_FILE = DataFile(
    path="corp.txt",
    role="text",
    rows=3,
    split="train",
    first_use=True,
    forms={"any": Form(sha256="", bytes=40)},
)
CORPUS = _set("corp", "corpus", {"any": "train"}, TEXT_FILE, items={"train": 3})


def _source(name: str, site: str, repo: str, revision: str, into: str, **more: Any) -> Source:
    usual = {"title": "", "form": "tokenised", "sets": ("ONE",)}
    return Source(name=name, site=site, repo=repo, revision=revision, into=into, **usual | more)


NOTE = "trust on first use: not seen"
ARCHIVE = _source("one.tar", "hub", "owner/data", "main", "archive", archive="one.tar", note=NOTE)
COPY = _source("copy", "github", "owner/copy", "c0ffee", "moses", root="data")
RAWS = replace(COPY, name="raws", root="raws", into="raw", form="raw")
ANYWHERE = {
    "form": "any",
    "sets": ("corp",),
    "files": {"corp.txt": SourcePart(paths=("corp.txt",))},
}
FIRST = _source("corp.txt", "hub", "owner/data", "main", "train", **ANYWHERE)


def tar(files: dict[str, bytes], before: str = "./") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(before + path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def serve_copy(hub: StandInHub, files: dict[str, bytes], root: str = "data") -> None:
    for path, data in files.items():
        hub.serve(f"raw.githubusercontent.com/owner/copy/c0ffee/{root}/{path}", data)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world with two sets and four sources."""
    sets, every = {"ONE": ONE, "corp": CORPUS}, [ARCHIVE, COPY, RAWS, FIRST]

    def of(wanted: DataSet, text: str = ANY) -> list[Source]:
        form = "tokenised" if text == ANY else text
        return [one for one in every if wanted.name in one.sets and one.form in (ANY, form)]

    monkeypatch.setattr("bench.data.sets.fetch.data_set", sets.__getitem__)
    monkeypatch.setattr("bench.data.sets.fetch.sources_of", of)
    monkeypatch.setattr("bench.data.sets.folder.sources_of", of)
    monkeypatch.setattr("bench.data.sets.pending.sources_of", of)
    monkeypatch.setattr("bench.data.sets.folder.data_sets", lambda: sets)
    monkeypatch.setattr("bench.data.sets.first_use.data_sets", lambda: sets)


@pytest.fixture
def fetcher(tmp_path: Path, known: None) -> Callable[..., Fetcher]:
    return lambda *say: Fetcher(tmp_path / "data", *say)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.suffix not in (".lock", ".json")
    }


def test_if_one_source_fails_the_next_is_used(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    serve_copy(hub, TOKENISED)
    lines: list[str] = []
    fetcher(lines.append).get(ONE)
    assert any("next source: github.com owner/copy" in line for line in lines)
    assert files(tmp_path / "data") == {f"moses/{path}": data for path, data in TOKENISED.items()}
    with pytest.raises(FetchFailed, match="is not there"):
        fetcher().get(ONE, "raw")  # nobody serves it


def test_a_file_that_is_not_what_the_manifest_knows_is_refused(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    serve_copy(hub, OTHER)
    with pytest.raises((DataDamaged, FetchFailed)):
        fetcher().get(ONE)
    assert not (tmp_path / "data/moses").exists()


@pytest.mark.parametrize("text", [TEXT, TEXT[: TEXT.index(b"third")]])
def test_a_text_without_checksum_has_its_commit_and_hash_beside_it(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path, text: bytes
) -> None:
    revision = hub.add("dataset", "owner/data", {"corp.txt": text})
    lines: list[str] = []
    fetcher(lines.append).get(CORPUS)
    path = tmp_path / "data/train/corp.txt"
    assert path.read_bytes() == text
    assert read_origin(path, sha(text)) == f"hf://datasets/owner/data@{revision}/corp.txt"
    shorter = "" if text == TEXT else "2 rows, where 3 were expected"
    assert unexpected_corpus(path, len(text.splitlines())) == shorter
    assert any("warning: corp" in line for line in lines) is bool(shorter)
    state = DataFolder(tmp_path / "data").check(CORPUS)
    assert state.status == "found" and "".join(state.problems) == shorter
    path.write_bytes(text + b"more\n")
    assert read_origin(path, sha(text + b"more\n")) is None


def test_an_opened_set_is_fetched_and_an_offline_one_says_how_to_bring_it(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path, no_network: list[object]
) -> None:
    hub.add("dataset", "owner/data", {"one.tar": tar(TOKENISED), "corp.txt": TEXT})
    offline = DataFolder(None, offline=True, fetcher=fetcher(), store=tmp_path / "data")
    with pytest.raises(DataMissing, match="nothing is fetched") as missing:
        offline.open(ONE, text="raw")
    assert "bench data fetch ONE --text raw --data DIR" in (missing.value.hint or "")
    with pytest.raises(DataMissing, match="corp.txt is not on this machine; nothing is fetched"):
        offline.corpus("corp.txt")
    online = DataFolder(None, fetcher=fetcher(), store=tmp_path / "data")
    with pytest.raises(DataMissing):
        online.as_it_is.open(ONE)
    assert hub.requests == [] and online.open(ONE).form == "tokenised"
    path = online.corpus("corp.txt")
    assert path is not None and path.read_bytes() == TEXT and online.corpus("unknown.txt") is None
    assert offline.open(ONE).form == "tokenised" and offline.corpus("corp.txt") == path


def test_nothing_is_fetched_if_a_folder_was_given(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    hub.add("dataset", "owner/data", {"one.tar": tar(TOKENISED), "corp.txt": TEXT})
    mine = tmp_path / "mine"
    mine.mkdir()
    folder = DataFolder(mine, fetcher=fetcher(), store=tmp_path / "data")
    with pytest.raises(DataMissing, match=f"ONE: not found in {mine}") as missing:
        folder.open(ONE)
    assert f"bench data fetch ONE --data {mine}" in str(missing.value.hint)
    assert folder.corpus("corp.txt") is None and hub.requests == []


HORSE = ("A person on a horse jumps over a plane.", 'A person trains his horse, or "so".')
CAFES = ("Caf\u00e9s \u2028 are two lines\nhere.", "There are caf\u00e9s.")


def labelled(label: str, first: str, second: str) -> dict[str, object]:
    """Make lines as in snli_1.0_train.jsonl, with keys that nobody reads here."""
    pair = {"gold_label": label, "sentence1": first, "sentence2": second}
    return pair | {"annotator_labels": [label], "pairID": "3416050480.jpg#4r1n"}


SNLI = [
    labelled("neutral", *HORSE),
    labelled("-", "Two men.", "Nobody agrees."),
    labelled("contradiction", "Two women.", ""),
]
MNLI = [labelled("entailment", *CAFES)]


def nli_archives() -> dict[str, bytes]:
    """Address of SNLI's and MultiNLI's archives -> archives in their layout, of a few pairs."""
    archives: dict[str, bytes] = {}
    for place, name, pairs in (
        ("nlp.stanford.edu/projects/snli/snli_1.0.zip", "snli_1.0", SNLI),
        ("cims.nyu.edu/~sbowman/multinli/multinli_1.0.zip", "multinli_1.0", MNLI),
    ):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"__MACOSX/{name}/._{name}_train.jsonl", b"\0")
            archive.writestr(f"{name}/{name}_train.txt", "gold_label\tsentence1\n")
            for split, of in (("dev", pairs[:1]), ("train", pairs)):
                archive.writestr(
                    f"{name}/{name}_{split}.jsonl", "".join(json.dumps(pair) + "\n" for pair in of)
                )
        archives[place] = out.getvalue()
    return archives


def test_labelled_nli_is_built_from_the_two_archives(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From archives with the known checksums alone; pairs without a gold label are left out."""
    name = "nli_labelled.csv"
    wanted, source = data_set("nli-labelled"), all_sources()[name]
    archives = nli_archives()  # once: an archive has the time of its making in it
    for place, data in archives.items():
        hub.serve(place, data)
    with pytest.raises(DataDamaged, match="snli_1.0.zip has the wrong checksum"):
        Fetcher(tmp_path).get(wanted)
    part = source.files[name]
    assert [path.partition("://")[2] for path in part.paths] == list(archives)
    hashes = tuple(map(sha, archives.values()))
    known = replace(source, files={name: replace(part, sha256=hashes)})
    monkeypatch.setattr("bench.data.sets.sources.all_sources", lambda: {source.name: known})
    lines: list[str] = []
    Fetcher(tmp_path, lines.append).get(wanted)
    counted = "3 rows, where 942,069 were expected"
    assert lines[-1] == f"warning: nli-labelled: {name} has {counted}; it is used as it is"
    state = DataFolder(tmp_path).check(wanted)
    assert (state.status, state.problems) == ("found", (counted,))
    few = replace(wanted, files=(replace(wanted.files[0], rows=3),))
    Fetcher(tmp_path).get(few)
    corpus = open_corpus_file(tmp_path / "train" / name, cache=tmp_path / "cache")
    assert corpus.columns == ("sent0", "sent1", "label") and corpus.kind == wanted.unit
    assert list(corpus.rows()) == [  # an empty cell is one space, as in every corpus
        (*HORSE, "neutral"),
        ("Two women.", " ", "contradiction"),
        (*CAFES, "entailment"),
    ]
    left = {path.name for path in (tmp_path / "train").iterdir()}
    assert left == {name}
    assert DataFolder(tmp_path).check(few).problems == ()
