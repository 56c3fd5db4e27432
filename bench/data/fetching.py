"""Files from the network, whole and checked or not at all: those of the Hugging Face hub by its own client, all others by pooch.

Both clients take proxies and certificates from the environment. Knows nothing of data sets or models.
"""

from __future__ import annotations

import contextlib
import email.utils
import io
import os
import shutil
import tarfile
import time
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bench.base.errors import DataDamaged, FetchFailed
from bench.base.files import file_sha256, lock

if TYPE_CHECKING:
    from huggingface_hub.hf_api import DatasetInfo

T = TypeVar("T")

TRIES = 4
"""Requests in a row that bring nothing before we give up."""
TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as dead."""
LONGEST_WAIT = 120.0
"""Seconds that a server's Retry-After may ask for; beyond that the user reads when to come back."""
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""
SPARE = 50_000_000
"""Bytes that a download leaves free on the disk."""
NO_NETWORK = "check the network, and HF_ENDPOINT, BENCH_MIRROR or a proxy where they are set"
LOGIN = "accept the terms on its page of the hub, then: hf auth login (or set HF_TOKEN)"


@dataclass(frozen=True)
class Site:
    """Where a file lies. ``repo``, ``revision`` and ``path`` are those of a data set of the hub; elsewhere ``url`` is all."""

    url: str
    repo: str = ""
    revision: str = ""
    path: str = ""


class Report(Protocol):
    """Shows how it goes. ``total`` is None where the server does not say."""

    def start(self, name: str, total: int | None, done: int) -> None: ...

    def advance(self, count: int) -> None: ...

    def finish(self) -> None: ...

    def say(self, line: str) -> None: ...


class Quiet:
    """Shows nothing."""

    def start(self, name: str, total: int | None, done: int) -> None: ...

    def advance(self, count: int) -> None: ...

    def finish(self) -> None: ...

    def say(self, line: str) -> None: ...


class Passing(Exception):
    """A failure that may be over at the next try; ``wait`` is what the server asked for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


def offline_now() -> bool:
    """Whether HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) forbids connections."""
    return any(
        os.environ.get(name, "0").upper() in ("1", "ON", "YES", "TRUE")
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    )


def endpoint() -> str:
    """The hub's address: $HF_ENDPOINT where that is set."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def site(kind: str, repo: str, revision: str, path: str) -> Site:
    """The address of a file. ``kind``: "hub" (a data set of the Hugging Face hub), "github" or "web" (``repo`` is the address of its
    folder; without one, ``path`` is the whole address).

    $HF_ENDPOINT replaces the hub's address. $BENCH_MIRROR is a server that keeps the other sites' files below their host
    names: MIRROR/raw.githubusercontent.com/owner/name/commit/path.
    """
    quoted = urllib.parse.quote(path)
    if kind == "hub":
        commit = urllib.parse.quote(revision, safe="")
        url = f"{endpoint()}/datasets/{repo}/resolve/{commit}/{quoted}"
        return Site(url, repo, revision, path)
    if kind == "github":
        return Site(_mirrored(f"https://raw.githubusercontent.com/{repo}/{revision}/{quoted}"))
    if kind == "web":
        return Site(_mirrored(f"{repo}/{quoted}" if repo else path))
    raise ValueError(f"no site is called {kind}")


def _mirrored(url: str) -> str:
    mirror = (os.environ.get("BENCH_MIRROR") or "").rstrip("/")
    return f"{mirror}/{url.split('://', 1)[1]}" if mirror else url


def host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc or url


def in_words(reason: object) -> str:
    """The innermost reason of a connection's failure, in one line without its number."""
    while isinstance(reason, BaseException) and (inner := reason.__cause__ or reason.__context__):
        reason = inner
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return " ".join(str(words).split())[:160]


def free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


# --- one file ---


def download(
    where: Site,
    to: Path,
    *,
    sha256: str | None = None,
    most_bytes: int | None = None,
    report: Report | None = None,
    name: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
    free: Callable[[Path], int] = free_bytes,
) -> str:
    """Fetch ``where`` into the file ``to``; gives its sha256. A file of that name and checksum that is there already stays.

    Two processes take turns. Failures that may pass are tried again, after what Retry-After asks for. ``name`` is what messages
    call the file. Raises FetchFailed (refused, unreachable, disk full, larger than ``most_bytes``) or DataDamaged (another
    checksum); then ``to`` is as it was.
    """
    report, name, arriving = report or Quiet(), name or to.name, to.with_name(to.name + ".part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with lock(to.with_name(to.name + ".lock")):
            if sha256 is not None and to.is_file() and file_sha256(to) == sha256:
                return sha256
            bar = _Bar(where, name, arriving.parent, most_bytes, report, free)
            get = _from_hub if where.repo else _from_web
            retry(lambda: get(where, arriving, bar), name, report, sleep)
            bar.check(arriving.stat().st_size)
            arrived = file_sha256(arriving)
            if sha256 not in (None, arrived):
                size = arriving.stat().st_size
                raise DataDamaged(
                    f"{where.url} is not what it should be: sha256 {arrived[:12]} ({size:,} bytes) found, {sha256[:12]} expected",
                    "nothing was stored; the file has changed at its source, or something on the way altered it",
                )
            os.replace(arriving, to)
            return arrived
    except OSError as error:
        raise FetchFailed(
            f"{to} cannot be written ({error.strerror or error})",
            "check the disk's free space, the folder and its permissions, then run the command again",
        ) from None
    finally:
        with contextlib.suppress(OSError):
            arriving.unlink()


class _Bar:
    """The progress bar that both clients drive, and the place where a file that is too large is noticed before it has filled the disk."""

    def __init__(
        self,
        where: Site,
        name: str,
        folder: Path,
        most_bytes: int | None,
        report: Report,
        free: Callable[[Path], int],
    ) -> None:
        self.where, self.name, self.folder, self.most_bytes = where, name, folder, most_bytes
        self.report, self.free, self.here = report, free, 0

    @property
    def total(self) -> int | None:
        return self._total

    @total.setter
    def total(self, size: int | None) -> None:
        """Known before the first byte, where the server says it; 0 means that it does not."""
        self._total, self.here = size or None, 0
        if size:
            self.check(size)
            if self.free(self.folder) < size + SPARE:
                raise FetchFailed(
                    f"{self.name} needs {size / 1e6:,.0f} MB, and {self.folder} has {self.free(self.folder) / 1e6:,.0f} MB free",
                    "free some space, or fetch into another disk with --data DIR",
                )
        self.report.start(self.name, self._total, 0)

    def update(self, count: float | None = 1) -> None:
        self.here += int(count or 0)
        self.check(self.here)
        self.report.advance(int(count or 0))

    def check(self, size: int) -> None:
        if self.most_bytes is not None and size > self.most_bytes + BLOCK:
            raise FetchFailed(
                f"{self.where.url} is larger ({size:,} bytes) than it may be ({self.most_bytes:,})",
                "nothing was stored; this is not the file that was meant",
            )

    def reset(self) -> None:
        """pooch counts whole blocks, and at the end once more what there was."""
        self.report.advance(-self.here)
        self.here = 0

    def close(self) -> None:
        self.report.finish()


BLOCK = 1 << 18


def _from_web(where: Site, to: Path, bar: _Bar) -> None:
    """One GET. Raises FetchFailed for a refusal that stays, Passing for what may be over soon."""
    import pooch
    import requests

    try:
        headers = {"User-Agent": "sentence-bench", "Accept-Encoding": "identity"}
        get = pooch.HTTPDownloader(
            progressbar=bar, chunk_size=BLOCK, timeout=TIMEOUT, headers=headers
        )
        get(where.url, str(to), None)
    except requests.HTTPError as error:
        assert error.response is not None
        raise refusal(where, error.response.status_code, error.response.headers) from None
    except (requests.exceptions.MissingSchema, requests.exceptions.InvalidURL) as error:
        raise FetchFailed(
            f"{where.url} is not an address: {error}", "check HF_ENDPOINT and BENCH_MIRROR"
        ) from None
    except requests.exceptions.SSLError as error:
        raise FetchFailed(
            f"the certificate of {host(where.url)} is not accepted ({in_words(error)})",
            "set REQUESTS_CA_BUNDLE to your organisation's bundle",
        ) from None
    except requests.RequestException as error:
        raise Passing(f"{host(where.url)} cannot be reached ({in_words(error)})") from None


def _from_hub(where: Site, to: Path, bar: _Bar) -> None:
    """By the hub's own client, which goes on where a cut download stopped. Raises as :func:`_from_web`."""
    from huggingface_hub import hf_hub_download
    from tqdm import tqdm

    class Progress(tqdm):  # type: ignore[type-arg]
        """Draws nothing and moves ours. Of a file that is assembled from chunks the client has a second bar, for the transfer."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self.counts = "downloading bytes" not in str(options.get("desc"))
            super().__init__(*arguments, **{**options, "file": io.StringIO(), "disable": False})
            if self.counts:
                bar.total = options.get("total")

        def update(self, n: float | None = 1) -> bool | None:
            if self.counts:
                bar.update(n)
            return super().update(n)

    folder = to.with_name(to.name + ".hub")

    def fetch(token: str | bool | None) -> str:
        return hf_hub_download(
            where.repo,
            where.path,
            repo_type="dataset",
            revision=where.revision,
            local_dir=folder,
            token=token,
            endpoint=endpoint(),
            etag_timeout=TIMEOUT,
            tqdm_class=Progress,
        )

    try:
        arrived = on_hub(fetch, where, bar.report)
    except FetchFailed:  # of a cut download the client keeps what has come, for the next try
        shutil.rmtree(folder, ignore_errors=True)
        raise
    bar.close()
    os.replace(arrived, to)
    shutil.rmtree(folder, ignore_errors=True)


# --- what a failure means, and how long to wait before the next try ---


def dataset_info(repo: str, revision: str, report: Report | None = None) -> DatasetInfo:
    """What the hub says of a data set at a revision or name of one ("main"): its commit, files with their sizes, card.

    Raises FetchFailed or Passing.
    """
    from huggingface_hub import HfApi

    return on_hub(
        lambda token: HfApi(endpoint=endpoint(), token=token).dataset_info(
            repo, revision=revision, files_metadata=True, timeout=TIMEOUT
        ),
        site("hub", repo, revision, ""),
        report or Quiet(),
    )


def without_refused_token(call: Callable[[str | bool | None], T], say: Callable[[str], None]) -> T:
    """The result of a call of the hub's client; where the hub refuses the token itself, also for public files, of one more without it."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return call(None)
    except HfHubHTTPError as error:
        if "Invalid credentials" not in str(error):
            raise
        say(
            "the hub refuses your token: asking without it (remove HF_TOKEN, or log in again: hf auth login)"
        )
        return call(False)


def on_hub(call: Callable[[str | bool | None], T], where: Site, report: Report) -> T:
    """The result of a call of the hub's client, which gets the token; once more without one where the hub refuses the token itself.

    Raises FetchFailed for a refusal that stays, Passing for what may be over soon.
    """
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return without_refused_token(call, report.say)
    except (FetchFailed, Passing, OSError, ValueError) as error:
        cause = error.__cause__ if isinstance(error, LocalEntryNotFoundError) else error
        if isinstance(cause, HfHubHTTPError) and cause.response is not None:
            raise refusal(where, cause.response.status_code, cause.response.headers) from None
        if isinstance(error, FetchFailed | Passing) or _of_the_disk(error):
            raise
        raise Passing(f"{host(where.url)} cannot be reached ({in_words(error)})") from None
    except Exception as error:  # of the client's own HTTP library
        raise Passing(f"{host(where.url)} cannot be reached ({in_words(error)})") from None


def _of_the_disk(error: Exception) -> bool:
    return isinstance(error, OSError) and error.filename is not None


def retry(call: Callable[[], T], name: str, report: Report, sleep: Callable[[float], None]) -> T:
    """The result of a call that may raise Passing, tried again a few times. Raises FetchFailed in the end."""
    for failures in range(1, TRIES + 1):
        try:
            return call()
        except Passing as failure:
            if failures == TRIES:
                raise FetchFailed(
                    f"{name}: {failure}, {TRIES} times",
                    f"{NO_NETWORK}; then run the command again",
                ) from None
            pause(failure, failures, name, report, sleep)
    raise AssertionError


def pause(
    failure: Passing, failures: int, name: str, report: Report, sleep: Callable[[float], None]
) -> None:
    """Say what went wrong and wait: as long as the server asks for, else 1, 2, 4 ... seconds."""
    wait = failure.wait if failure.wait is not None else float(2 ** (failures - 1))
    report.say(f"{name}: {failure}; next try in {wait:.0f} s")
    sleep(wait)


def refusal(where: Site, status: int, headers: Mapping[str, str]) -> Exception:
    """What a status other than success means: Passing or FetchFailed."""
    there = host(where.url)
    if status in PASSING:
        wait = seconds_to_wait(headers.get("Retry-After"))
        if wait is not None and wait > LONGEST_WAIT:
            return FetchFailed(
                f"{there} asks to wait {wait:.0f} s before the next request (status {status})",
                "run the command again after that; what has arrived stays",
            )
        return Passing(f"{there} answered {status}", wait)
    if status in (401, 403) and where.repo:
        return FetchFailed(f"{where.url} is gated, private or not there (status {status})", LOGIN)
    if status in (401, 403):
        return FetchFailed(
            f"{where.url} is not open to us (status {status})",
            "get the file by hand; bench data list NAME says where it goes",
        )
    if status in (404, 410):
        return FetchFailed(
            f"{where.url} is not there (status {status})",
            "it was moved or removed; bench data list NAME says what else serves",
        )
    return FetchFailed(f"{where.url} answered {status}", None)


def seconds_to_wait(value: str | None) -> float | None:
    """Retry-After as seconds from now: a number, or a date (RFC 9110, 10.2.3). None where it is neither."""
    if not value:
        return None
    if value.strip().isdigit():
        return float(value.strip())
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def check_network(urls: Iterable[str], seconds: float = 8.0) -> None:
    """Raises FetchFailed, in one line, where none of these servers answers a request for its front page, whatever it answers."""
    import requests

    problems: dict[str, str] = {}
    for url in urls:
        if (there := host(url)) in problems:
            continue
        try:
            front = "{0.scheme}://{0.netloc}/".format(urllib.parse.urlsplit(url))
            requests.head(front, timeout=seconds).close()
            return
        except requests.RequestException as error:
            problems[there] = in_words(error)
    if problems:
        names, why = list(problems), next(iter(problems.values()))
        who = f"{names[0]} cannot" if len(names) == 1 else f"neither {' nor '.join(names)} can"
        raise FetchFailed(f"no network: {who} be reached ({why})", NO_NETWORK)


# --- files out of a tar or zip ---


def unpack(
    archive: Path, place: Callable[[str], Path | None], *, most_bytes: int = 2_000_000_000
) -> dict[str, Path]:
    """Write the regular files for which ``place`` (of the member's name) names a file; gives name -> file.

    Members are written to the files that ``place`` gives and to no others, so that paths, links, owners and modes in the archive
    have no effect. Raises DataDamaged for an archive that is damaged, hostile or larger than allowed, FetchFailed
    where the disk is full; then nothing that was written stays.
    """
    written: dict[str, Path] = {}
    try:
        total = 0
        for name, size, content in _members(archive):
            if (to := place(name)) is None:
                continue
            total += size
            if total > most_bytes or to in written.values():
                raise ValueError(f"it is larger than {most_bytes:,} bytes, or has {to.name} twice")
            to.parent.mkdir(parents=True, exist_ok=True)
            to.unlink(missing_ok=True)  # never through a link that lies there
            written[name] = to
            with content() as source, to.open("xb") as file:
                shutil.copyfileobj(source, file, BLOCK)
            if to.stat().st_size != size:
                raise ValueError(f"{name} has another size than the archive says")
    except BaseException as error:
        for path in written.values():
            path.unlink(missing_ok=True)
        damaged = tarfile.TarError | zipfile.BadZipFile | EOFError | zlib.error | ValueError
        if isinstance(error, damaged | NotImplementedError | RuntimeError):
            why = " ".join(str(error).split())[:120]
            raise DataDamaged(
                f"{archive.name} cannot be unpacked: {why}", "fetch it again"
            ) from None
        if isinstance(error, OSError):
            raise FetchFailed(
                f"{archive.name} could not be unpacked ({error.strerror or error})",
                "check the disk's free space, then run the command again",
            ) from None
        raise
    return written


def _members(archive: Path) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """(name, size, how to open it) of the regular files of an archive."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                kind = (entry.external_attr >> 16) & 0o170000
                if not entry.is_dir() and kind in (0, 0o100000):
                    yield entry.filename, entry.file_size, partial(opened.open, entry)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isreg():
                yield str(PurePosixPath(member.name)), member.size, partial(tar.extractfile, member)
