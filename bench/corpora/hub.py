"""Training text out of a data set of the Hugging Face hub: ``hub:owner/name:column``. See docs/corpora.md.

One file of the data set after the other is fetched (resumed after a cut, checked against the hub's checksum), the columns that
are asked for are written as JSON lines, and the file goes again: neither memory nor disk ever holds more than one of them.
What was made is kept under the name that was asked for; the revision of the data set is the one of that first time.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.corpora.cache import default_cache, locked
from bench.corpora.hub_name import PREFIX, HubName
from bench.corpora.hub_rows import SUFFIXES, HubRow, read_rows, suffix_of
from bench.errors import CorpusError, DataMissing
from bench.fetching import Quiet, Report, Site, download, persistently, site
from bench.fetching.http import Passing, get
from bench.files import write_whole

TRAIN = re.compile(r"(^|[/_.\-])train([/_.\-]|$)")
OTHER_SPLIT = re.compile(r"(^|[/_.\-])(test|validation|valid|val|dev|eval)([/_.\-]|$)")


def hub_corpus(
    text: str, *, offline: bool = False, report: Report | None = None, cache: Path | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Path, str]:  # fmt: skip
    """The file with the rows of ``text``, made now where it is not here yet, and its name with the revision.

    Raises CorpusError (no such column, several tables, not text), DataMissing (``offline``, and not here), FetchFailed or
    DataDamaged (it could not be downloaded).
    """
    name = HubName.of(text)
    folder = _folder_of(name, cache)
    if (folder / "about.json").is_file():
        return _known(folder)
    if offline:
        raise DataMissing(f"{text} is not on this machine, and nothing is fetched (--offline)",
                          f"run the same command where there is a network, then bring {folder} over, to the same place or below BENCH_CACHE")  # fmt: skip
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(folder.name + ".lock")):
        if not (folder / "about.json").is_file():
            _make(name, folder, report or Quiet(), sleep)
    return _known(folder)


def is_here(text: str, cache: Path | None = None) -> bool:
    """Whether the rows were fetched earlier. Raises CorpusError for what is no such name."""
    return (_folder_of(HubName.of(text), cache) / "about.json").is_file()


def _folder_of(name: HubName, cache: Path | None) -> Path:
    root = cache if cache is not None else default_cache()
    return root / "hub-corpora" / f"{name.repo.replace('/', '--')}-{hashlib.sha256(name.text.encode()).hexdigest()[:12]}"


def _known(folder: Path) -> tuple[Path, str]:
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return folder / "rows.jsonl", str(about["name"])


def _make(name: HubName, folder: Path, report: Report, sleep: Callable[[float], None]) -> None:
    """Fill ``folder``. Each file of the data set becomes a part; what an earlier, interrupted try made is taken as it is."""
    listing = persistently(lambda: _listing(name, _revision_of(folder, name)), name.repo, report, sleep)
    revision = str(listing["sha"])
    sizes = {one["rfilename"]: one.get("size") or 0 for one in listing["siblings"]}
    chosen = data_files(name, list(sizes))
    licence = (listing.get("cardData") or {}).get("license") or "not stated"
    size = f"{sum(sizes[file] for file in chosen) / 1e6:,.0f} MB in {len(chosen)} file{'s' if len(chosen) > 1 else ''}"
    at_most = f"at most {name.limit:,} rows, " if name.limit else ""
    report.say(f"fetching {name.text}: {name.repo} at {revision[:12]}, {at_most}{size}, licence {licence}")
    work = folder / "parts"
    work.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "revision.txt", revision.encode())
    parts: list[Path] = []
    rows = 0
    for i, file in enumerate(chosen):
        left = None if name.limit is None else name.limit - rows
        if left is not None and left <= 0:
            break
        part = work / f"{i:05d}.jsonl"
        if not part.is_file():
            raw = work / f"{i:05d}.raw{suffix_of(file)}"
            download(site("hub", name.repo, revision, file), raw, report=report, name=Path(file).name, sleep=sleep)
            _write_rows(read_rows(raw, file, name), part, left)
            raw.unlink()
        with part.open("rb") as stream:
            rows += sum(1 for _ in stream)
        parts.append(part)
    if not rows:
        raise CorpusError(f"{name.text} has no rows", "expected one sentence in each")
    _join(parts, folder / "rows.jsonl")
    columns = ",".join(name.columns) + (f"#{name.limit}" if name.limit else "")
    full = f"{PREFIX}{name.repo}@{revision[:12]}{'/' + name.path if name.path else ''}:{columns}"
    about = {"name": full, "revision": revision, "files": chosen[: len(parts)], "rows": rows, "licence": licence}
    write_whole(folder / "about.json", (json.dumps(about, indent=1) + "\n").encode())
    shutil.rmtree(work, ignore_errors=True)


def _revision_of(folder: Path, name: HubName) -> str:
    """The revision to ask for: that of an earlier try where its parts are here, else the one that was named."""
    earlier = folder / "revision.txt"
    return earlier.read_text().strip() if earlier.is_file() else name.revision or "main"


def _listing(name: HubName, revision: str) -> dict[str, Any]:
    """What the hub says of a data set at a revision: its commit, files with sizes, card. Raises FetchFailed or Passing."""
    page = site("hub", name.repo, revision, "")
    endpoint = page.url.split(f"/datasets/{name.repo}/")[0]
    address = Site(f"{endpoint}/api/datasets/{name.repo}/revision/{quote(revision, safe='')}?blobs=true", page.token, page.login)
    with get(address) as answer:
        try:
            found = json.loads(b"".join(iter(lambda: answer.read(1 << 20), b"")))
            return dict(found) | {"sha": found["sha"], "siblings": found["siblings"]}
        except (ValueError, KeyError, TypeError) as error:
            raise Passing(f"{address.url} gave no list of files ({type(error).__name__})") from None


def data_files(name: HubName, files: list[str]) -> list[str]:
    """The files to read, in their order: those of the training split of one table. Raises CorpusError where that is not clear."""
    readable = [file for file in files if suffix_of(file) in SUFFIXES and not Path(file).name.startswith((".", "_"))]
    if name.path:
        below = [file for file in readable if file == name.path or file.startswith(name.path + "/")]
        if not below:
            raise CorpusError(f"{name.text}: {name.repo} has no data in '{name.path}'", _choices(readable, name))
        readable = below
    if name.path not in readable:
        train = [file for file in readable if TRAIN.search(Path(file).as_posix())]
        readable = train or [file for file in readable if not OTHER_SPLIT.search(file)]
    tables = {(Path(file).parent.as_posix(), suffix_of(file)) for file in readable}
    if not readable:
        raise CorpusError(f"{name.text}: {name.repo} has no training data in a format that is read here",
                          f"formats: {', '.join(sorted(SUFFIXES))}")  # fmt: skip
    if len(tables) > 1 or (suffix_of(readable[0]) == ".txt" and len(readable) > 1 and not name.path):
        raise CorpusError(f"{name.text}: {name.repo} has several tables", _choices(readable, name))
    return sorted(readable)


def _choices(files: list[str], name: HubName) -> str:
    """The folders of the data set that hold data, and files that lie in none, as what can be written."""
    places = sorted({str(Path(file).parent) if "/" in file else file for file in files})
    some = ", ".join(places[:8]) + (", ..." if len(places) > 8 else "")
    return f"name one: {PREFIX}{name.repo}/{places[0] if places else 'FOLDER'}:...; there is {some or 'none'}"


def _write_rows(rows: Iterator[HubRow], part: Path, limit: int | None) -> None:
    aside = part.with_suffix(".new")
    with aside.open("w", encoding="utf-8") as file:
        for row in itertools.islice(rows, limit):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    aside.replace(part)


def _join(parts: list[Path], whole: Path) -> None:
    aside = whole.with_suffix(".new")
    with aside.open("wb") as out:
        for part in parts:
            with part.open("rb") as stream:
                shutil.copyfileobj(stream, out, 1 << 20)
    aside.replace(whole)
