"""Data sets from their sources: announced, checked, from the next source where one fails, trusted on first use where it must be."""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hub import StandInHub

from bench.base.errors import DataDamaged, DataMissing, FetchFailed
from bench.data.corpora import open_corpus
from bench.data.sets import (
    DataFolder,
    DataSet,
    Fetcher,
    Later,
    NotFetchedYet,
    Source,
    data_set,
    data_sets,
    sources,
    sources_of,
)
from bench.data.sets.fetch import CONVERSIONS
from bench.data.sets.manifest import ANY, DataFile, Form, content_hash, read_receipt
from bench.data.sets.sources import Part

TOKENISED = {"A/one.txt": b"a cat 's\tone dog\nb\tc\n", "A/two.txt": b"x y\tz\n"}
RAW = {"A/one.txt": b"A cat's\tone dog\nB\tC\n", "A/two.txt": b"X Y\tz\n"}
OTHER = {"A/one.txt": b"a cat ' s\tone dog\nb\tc\n", "A/two.txt": b"x y\tz\n"}
TEXT = b"first sentence\nsecond sentence\nthird\n"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _set() -> DataSet:
    files = []
    for path, data in TOKENISED.items():
        rows = [line.split("\t") for line in data.decode().splitlines()]
        forms = {
            "tokenised": Form(sha256=sha(data), bytes=len(data)),
            "raw": Form(sha256=sha(RAW[path]), bytes=len(RAW[path])),
        }
        files.append(
            DataFile(
                path=path,
                role="pairs",
                rows=len(rows),
                columns=2,
                content=content_hash(rows),
                forms=forms,
            )
        )
    return DataSet(
        name="ONE",
        kind="evaluation",
        title="One",
        suites=("sts",),
        unit="pairs",
        items={"test": 3},
        licence="of nobody",
        terms="the terms of one",
        source="us",
        cite="us",
        get="ask us",
        homes={"tokenised": "moses", "raw": "raw"},
        also=("archive",),
        files=tuple(files),
        accept=True,
    )


ONE = _set()
CORPUS = DataSet(
    name="corp",
    kind="corpus",
    title="Corpus",
    suites=(),
    unit="sentences",
    items={"train": 3},
    licence="free",
    terms="none",
    source="us",
    cite="us",
    get="ask us",
    homes={"any": "train"},
    files=(
        DataFile(
            path="corp.txt",
            role="text",
            rows=3,
            split="train",
            first_use=True,
            forms={"any": Form(sha256="", bytes=40)},
        ),
    ),
)
ARCHIVE = Source(
    name="one.tar",
    title="",
    site="hub",
    repo="owner/data",
    revision="main",
    archive="one.tar",
    into="archive",
    form="tokenised",
    sets=("ONE",),
    note="trust on first use: not seen",
)
COPY = Source(
    name="copy",
    title="",
    site="github",
    repo="owner/copy",
    revision="c0ffee",
    root="data",
    into="moses",
    form="tokenised",
    sets=("ONE",),
)
RAWS = replace(COPY, name="raws", root="raws", into="raw", form="raw")
FIRST = Source(
    name="corp.txt",
    title="",
    site="hub",
    repo="owner/data",
    revision="main",
    into="train",
    form="any",
    sets=("corp",),
    files={"corp.txt": Part(paths=("corp.txt",))},
)


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def start(self, name: str, total: int | None, done: int) -> None: ...

    def advance(self, count: int) -> None: ...

    def finish(self) -> None: ...

    def say(self, line: str) -> None:
        self.lines.append(line)


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
    for module in ("folder", "sources"):
        monkeypatch.setattr(importlib.import_module(f"bench.data.sets.{module}"), "sources_of", of)
    monkeypatch.setattr("bench.data.sets.folder.data_sets", lambda: sets)


@pytest.fixture
def fetcher(tmp_path: Path, known: None) -> Callable[..., Fetcher]:
    return lambda heard=None, **more: Fetcher(
        tmp_path / "data", heard, sleep=lambda _: None, **more
    )


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.suffix not in (".lock", ".json")
    }


def test_a_set_comes_out_of_an_archive_with_a_receipt(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    packed = tar({**TOKENISED, "B/stranger.txt": b"?"}, "./downstream/")
    revision = hub.add("dataset", "owner/data", {"one.tar": packed})
    heard = Heard()
    fetcher(heard).get(ONE)
    assert files(tmp_path / "data") == {f"archive/{path}": data for path, data in TOKENISED.items()}
    receipt = read_receipt(tmp_path / "data/archive/one.tar.receipt.json")
    assert receipt and (receipt.revision, receipt.downloads) == (revision, {"one.tar": sha(packed)})
    assert heard.lines == [
        f"fetching from hub data set owner/data into {tmp_path / 'data/archive'}"
    ]
    before = len(hub.requests)
    fetcher().get(ONE)
    assert len(hub.requests) == before  # what is there is not asked for


def test_another_tokenisation_in_the_archive_is_kept_and_the_known_one_is_fetched_too(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    hub.add("dataset", "owner/data", {"one.tar": tar(OTHER)})
    serve_copy(hub, TOKENISED)
    fetcher().get(ONE, "tokenised")
    copies, problems = DataFolder(tmp_path / "data").copies(ONE)
    assert [copy.form[:6] for copy in copies] == ["tokeni", "other-"] and problems == []


def test_where_one_source_fails_the_next_is_taken(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    serve_copy(hub, TOKENISED)
    heard = Heard()
    fetcher(heard).get(ONE)
    assert any(line.startswith("not from hub data set owner/data: ") for line in heard.lines)
    assert files(tmp_path / "data") == {f"moses/{path}": data for path, data in TOKENISED.items()}
    with pytest.raises(FetchFailed, match="is not there"):
        fetcher().get(ONE, "raw")  # nobody serves it


@pytest.mark.parametrize(
    "spoilt",
    [OTHER, {**TOKENISED, "A/two.txt": b"x y\tw\n"}, {**TOKENISED, "A/one.txt": b"<html>"}],
)
def test_a_file_that_is_not_what_the_manifest_knows_is_refused(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path, spoilt: dict[str, bytes]
) -> None:
    serve_copy(hub, spoilt)
    with pytest.raises((DataDamaged, FetchFailed)):
        fetcher().get(ONE)
    assert not (tmp_path / "data/moses").exists()


def test_a_damaged_archive_leaves_nothing_and_what_is_right_in_it_is_not_lost(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    hub.add("dataset", "owner/data", {"one.tar": tar({**TOKENISED, "A/two.txt": b"cut"})})
    serve_copy(hub, TOKENISED)
    heard = Heard()
    fetcher(heard).get(ONE)
    assert any(line.startswith("one.tar has another A/two.txt: ONE: ") for line in heard.lines)
    assert files(tmp_path / "data") == {
        "archive/A/one.txt": TOKENISED["A/one.txt"],
        **{f"moses/{path}": data for path, data in TOKENISED.items()},
    }


def test_the_first_copy_is_trusted_and_every_later_one_is_held_against_it(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    first = hub.add("dataset", "owner/data", {"corp.txt": TEXT})
    fetcher().get(CORPUS)
    path = tmp_path / "data/train/corp.txt"
    receipt = read_receipt(path.with_name("corp.txt.receipt.json"))
    assert receipt and receipt.revision == first and receipt.downloads == {"corp.txt": sha(TEXT)}
    changed = TEXT.replace(b"third", b"fifth")
    hub.add("dataset", "owner/data", {"corp.txt": changed})
    path.unlink()
    fetcher().get(CORPUS)
    assert path.read_bytes() == TEXT  # the revision is pinned
    path.unlink()
    hub.repos["dataset", "owner/data"].revisions[first]["corp.txt"] = (
        changed  # the same revision, other bytes
    )
    with pytest.raises(DataDamaged, match="is not what it should be"):
        fetcher().get(CORPUS)
    path.write_bytes(changed)
    state = DataFolder(tmp_path / "data").check(CORPUS)
    assert state.status == "damaged" and "was fetched" in state.problems[0]


def test_a_copy_that_the_user_brought_has_no_receipt_and_only_its_rows_are_checked(
    known: None, tmp_path: Path
) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train/corp.txt").write_bytes(TEXT)
    folder = DataFolder(tmp_path)
    assert folder.check(CORPUS).status == folder.look(CORPUS).status == "found"
    assert folder.open(CORPUS).sha256
    (tmp_path / "train/corp.txt").write_bytes(TEXT[: TEXT.index(b"third")])
    assert "2 rows found, 3 expected" in folder.check(CORPUS).problems[0]


def test_a_cut_fetch_of_several_files_goes_on(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    serve_copy(hub, TOKENISED)
    hub.fault("two.txt", cut_after=3)
    hub.fault("two.txt", status=500, times=None)
    with pytest.raises(FetchFailed):
        fetcher().get(ONE)
    assert not (tmp_path / "data/moses").exists()  # a set is there whole or not at all
    hub.faults.clear()
    hub.requests.clear()
    fetcher().get(ONE)
    assert len([one for one in hub.requests if "githubusercontent" in one.path]) == 1
    assert DataFolder(tmp_path / "data").check(ONE).status == "found"


def test_no_room(hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path) -> None:
    hub.add("dataset", "owner/data", {"one.tar": tar(TOKENISED), "corp.txt": TEXT})
    with pytest.raises(FetchFailed, match="MB free"):
        fetcher(free=lambda _: 100).get(CORPUS)
    assert files(tmp_path / "data") == {}


def test_an_opened_set_is_fetched_and_an_offline_one_says_how_to_bring_it(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path, no_network: list[object]
) -> None:
    hub.add("dataset", "owner/data", {"one.tar": tar(TOKENISED), "corp.txt": TEXT})
    offline = DataFolder(None, offline=True, fetcher=fetcher(), store=tmp_path / "data")
    with pytest.raises(DataMissing, match="nothing is fetched") as missing:
        offline.open(ONE)
    assert (
        missing.value.hint
        == "where there is a network: bench data fetch ONE --data DIR; copy DIR here, then --data DIR"
    )
    with pytest.raises(DataMissing) as missing:
        offline.open(ONE, text="raw")
    assert "bench data fetch ONE --text raw --data DIR" in (missing.value.hint or "")
    with pytest.raises(DataMissing, match="corp.txt is not on this machine; nothing is fetched"):
        offline.corpus("corp.txt")
    assert hub.requests == []
    online = DataFolder(None, fetcher=fetcher(), store=tmp_path / "data")
    with pytest.raises(DataMissing):
        online.as_it_is.open(ONE)
    assert hub.requests == [] and online.open(ONE).form == "tokenised"
    path = online.corpus("corp.txt")
    assert path is not None and path.read_bytes() == TEXT and online.corpus("unknown.txt") is None
    assert offline.open(ONE).form == "tokenised" and offline.corpus("corp.txt") == path


def test_a_plan_notes_what_it_would_fetch_and_asks_nobody(
    hub: StandInHub, known: None, tmp_path: Path, no_network: list[object]
) -> None:
    later = Later()
    plan = DataFolder(None, fetcher=later, store=tmp_path / "data")
    for _ in range(2):
        with pytest.raises(NotFetchedYet):
            plan.open(ONE)
        with pytest.raises(NotFetchedYet):
            plan.corpus("corp.txt")
    one, corpus = later.pending
    assert (one.name, one.kind, one.licence, one.terms) == (
        "ONE",
        "data",
        "of nobody",
        "the terms of one",
    )
    assert one.notes == ("one.tar: trust on first use: not seen",) and one.archives == {
        "one.tar": ("ONE",)
    }
    assert (
        one.where == "hub data set owner/data"
        and f"{hub.url}/datasets/owner/data/resolve/main/one.tar" in one.urls
    )
    assert (corpus.name, corpus.kind, corpus.bytes) == ("corp", "corpus", CORPUS.bytes)
    assert hub.requests == [] and no_network == []


def test_beside_a_folder_that_was_given_nothing_is_fetched(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    hub.add("dataset", "owner/data", {"one.tar": tar(TOKENISED), "corp.txt": TEXT})
    mine = tmp_path / "mine"
    mine.mkdir()
    folder = DataFolder(mine, fetcher=fetcher(), store=tmp_path / "data")
    with pytest.raises(DataMissing, match=f"ONE: not found in {mine}") as missing:
        folder.open(ONE)
    assert (
        missing.value.hint == f"to get it: bench data fetch ONE --data {mine}"
        and missing.value.name == "ONE"
    )
    assert folder.corpus("corp.txt") is None and hub.requests == []
    with pytest.raises(DataMissing, match=f"the data folder {mine / 'no'} does not exist"):
        DataFolder(mine / "no").check_root()
    (mine / "file").write_text("")
    with pytest.raises(DataMissing, match="is a file"):
        DataFolder(mine / "file").check_root()
    DataFolder(mine).check_root()
    DataFolder(None).check_root()


def test_the_users_folder_comes_first(
    hub: StandInHub, fetcher: Callable[..., Fetcher], tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    for path, data in TOKENISED.items():
        (mine / "moses" / path).parent.mkdir(parents=True, exist_ok=True)
        (mine / "moses" / path).write_bytes(data)
    folder = DataFolder(mine, fetcher=fetcher(), store=tmp_path / "data")
    assert folder.open(ONE).place == mine / "moses" and hub.requests == []
    serve_copy(hub, RAW, "raws")
    with pytest.raises(DataMissing, match="no raw text found, only tokenised") as missing:
        folder.open(ONE, text="raw")
    assert f"to get the raw form: bench data fetch ONE --text raw --data {mine}" in str(
        missing.value.hint
    )
    fetcher().get(ONE, "raw")
    assert folder.open(ONE, text="raw").place == tmp_path / "data/raw"


@pytest.mark.slow
def test_two_processes_that_want_one_set_fetch_it_once(hub: StandInHub, tmp_path: Path) -> None:
    text = b"".join(b"sentence %d\n" % i for i in range(1_000_000))
    hub.add("dataset", "princeton-nlp/datasets-for-simcse", {"wiki1m_for_simcse.txt": text})
    hub.fault("wiki1m_for_simcse.txt", slow=0.002, times=None)
    code = "import sys; from pathlib import Path; from bench.data.sets import Fetcher, data_set; Fetcher(Path(sys.argv[1])).get(data_set('wiki1m'))"
    both = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "data"]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert len(hub.asked("wiki1m_for_simcse.txt", "GET")) == 1
    assert DataFolder(tmp_path / "data").check(data_set("wiki1m")).status == "found"


# the real sources


def test_every_source_is_of_sets_that_exist_and_gives_files_that_they_have() -> None:
    for source in sources().values():
        wanted = [data_set(name) for name in source.sets]
        paths = {file.path for one in wanted for file in one.files}
        assert set(source.files) <= paths, source.name
        assert {part.conversion for part in source.files.values()} <= {"as is", *CONVERSIONS}
        assert all(source.into in one.places for one in wanted), source.name
        assert source.form == ANY or all(
            source.form in (*one.forms, ANY) or not one.forms for one in wanted
        )
        assert source.pinned or "trust on first use" in source.note
        assert all(
            len(part.sha256) == len(part.paths)
            for part in source.files.values()
            if part.conversion != "as is"
        )
        if source.site == "github":
            assert len(source.revision) == 40


def test_every_evaluation_set_but_the_prepared_table_can_be_fetched_whole() -> None:
    for one in data_sets().values():
        if one.kind == "evaluation" and one.name != "CxC-STS":
            for form in one.forms or (ANY,):
                given = sources_of(one, form)
                assert all(any(source.part(file) for source in given) for file in one.files), (
                    one.name,
                    form,
                )


@pytest.mark.parametrize(
    ("name", "given", "want"),
    [
        (
            "labelled lines",
            [b"\xef\xbb\xbf1\ta b \r\n2\tc\td\t\r\n3\te"],
            b"1\ta b\n2\tc d\n3\te\n",
        ),
        (
            "JSON lines",
            [b'{"text": " a b", "cluster": 7}\n{"text": "", "cluster": 8}\n'],
            b"7\ta b\n8\t\n",
        ),
        ("text and labels", [b"a\tb \nc\n", b"1\n2\n"], b"1\ta b\n2\tc\n"),
        ("first 2 columns", [b"a\tb\tsource\nc\td\n"], b"a\tb\nc\td\n"),
    ],
)
def test_conversions(name: str, given: list[bytes], want: bytes) -> None:
    assert CONVERSIONS[name](given) == want


SNLI = [  # as snli_1.0_train.jsonl has them, with keys that nobody reads here
    {
        "annotator_labels": ["neutral"],
        "captionID": "3416050480.jpg#4",
        "gold_label": "neutral",
        "pairID": "3416050480.jpg#4r1n",
        "sentence1": "A person on a horse jumps over a broken down airplane.",
        "sentence2": 'A person is training his horse, or "so".',
    },
    {
        "annotator_labels": ["neutral", "contradiction"],
        "gold_label": "-",
        "sentence1": "Two men.",
        "sentence2": "Nobody agrees.",
    },
    {
        "annotator_labels": ["contradiction"],
        "gold_label": "contradiction",
        "sentence1": "Two women.",
        "sentence2": "",
    },
]
MNLI = [
    {
        "annotator_labels": ["entailment"],
        "genre": "fiction",
        "gold_label": "entailment",
        "promptID": "31193",
        "pairID": "31193n",
        "sentence1": "Caf\u00e9s \u2028 are two lines\nhere.",
        "sentence2": "There are caf\u00e9s.",
    }
]


def nli_archives() -> dict[str, bytes]:
    """Where SNLI's and MultiNLI's archives lie -> archives in their layout, of a few pairs."""
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
    """From archives with the known checksums alone; pairs without a gold label are left out; what was built is held against later."""
    wanted, source = data_set("nli-labelled"), sources()["nli_labelled.csv"]
    for place, data in nli_archives().items():
        hub.serve(place, data)
    with pytest.raises(DataDamaged, match="snli_1.0.zip is not what it should be"):
        Fetcher(tmp_path).get(wanted)
    part = source.files["nli_labelled.csv"]
    assert [path.partition("://")[2] for path in part.paths] == list(nli_archives())
    known = replace(
        source,
        files={"nli_labelled.csv": replace(part, sha256=tuple(map(sha, nli_archives().values())))},
    )
    monkeypatch.setattr(
        importlib.import_module("bench.data.sets.sources"), "sources", lambda: {source.name: known}
    )
    with pytest.raises(DataDamaged, match="3 rows found, 942,069 expected"):
        Fetcher(tmp_path).get(wanted)
    few = replace(wanted, files=(replace(wanted.files[0], rows=3),))
    Fetcher(tmp_path).get(few)
    corpus = open_corpus(tmp_path / "train/nli_labelled.csv", cache=tmp_path / "cache")
    assert corpus.columns == ("sent0", "sent1", "label") and corpus.kind == wanted.unit
    assert list(corpus.rows()) == [  # an empty cell is one space, as in every corpus
        (
            "A person on a horse jumps over a broken down airplane.",
            'A person is training his horse, or "so".',
            "neutral",
        ),
        ("Two women.", " ", "contradiction"),
        ("Caf\u00e9s \u2028 are two lines\nhere.", "There are caf\u00e9s.", "entailment"),
    ]
    assert {path.name for path in (tmp_path / "train").iterdir()} == {
        "nli_labelled.csv",
        "nli_labelled.csv.receipt.json",
    }
    assert DataFolder(tmp_path).check(few).status == "found"
    corpus.path.write_bytes(corpus.path.read_bytes().replace(b"women", b"woman"))
    assert "was fetched" in DataFolder(tmp_path).check(few).problems[0]


def test_texts_and_labels_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError):
        CONVERSIONS["text and labels"]([b"a\nb\n", b"1\n"])
