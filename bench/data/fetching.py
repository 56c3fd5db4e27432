"""Fetch a file of the web with pooch, whole and checked or not at all; addresses of all files.

pooch has no lock, no limit and no offline mode. It takes a file that was cut for whole if nobody
told its length or checksum, and leaves its part of a file when it is killed. So each file arrives
in a separate folder. Files of the hub: ``bench.data.hub``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import DataDamaged, FetchFailed, FetchRefused
from bench.base.files import share_files
from bench.base.hashes import file_sha256
from bench.base.locks import lock
from bench.base.text import list_names

if TYPE_CHECKING:
    from rich.progress import Progress

Say = Callable[[str], object]
"""Shows one line to the user."""

TIMEOUT = 30.0
"""A connection counts as dead after so many seconds without a byte."""
MOST_BYTES = 10_000_000_000
"""Largest size of a file outside the hub, unless a smaller limit is known."""
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of the disk itself, which name no file."""
BLOCK = 1 << 18
NO_NETWORK = (
    "check the network, and HF_ENDPOINT, SSL_CERT_FILE or the proxy if they are set; "
    "then run the command again"
)
DISK_HINT = "check the disk's free space and the folder's permissions, then run the command again"


@dataclass(frozen=True)
class Site:
    """The address of a file.

    ``kind`` ("dataset" or "model"), ``repo``, ``revision`` and ``path`` are set for the hub.
    """

    url: str
    kind: str = ""
    repo: str = ""
    revision: str = ""
    path: str = ""


def silent(line: str) -> None:
    """Show nothing."""


def offline_now() -> bool:
    """Return True if HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) forbids connections."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name, "0").upper() in ("1", "ON", "YES", "TRUE"):
            return True
    return False


def check_online(url: str) -> None:
    """Raise FetchFailed if a variable forbids the connection that an address needs."""
    if offline_now():
        raise FetchFailed(f"{url} is not fetched: HF_HUB_OFFLINE is set", "unset HF_HUB_OFFLINE")


def endpoint() -> str:
    """Return the hub's address: $HF_ENDPOINT if that is set."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def site(kind: str, repo: str, revision: str, path: str) -> Site:
    """Return the address of a file.

    ``kind``: "hub" (a data set of the Hugging Face hub), "model" (one of its models, as a whole),
    "github" or "web" (``repo`` is the address of its folder; without one, ``path`` is the whole
    address). $HF_ENDPOINT replaces the hub's address.
    """
    quoted = urllib.parse.quote(path)
    if kind == "hub":
        commit = urllib.parse.quote(revision, safe="")
        url = f"{endpoint()}/datasets/{repo}/resolve/{commit}/{quoted}"
        return Site(url, "dataset", repo, revision, path)
    if kind == "model":
        return Site(f"{endpoint()}/{repo}/tree/{revision}", "model", repo, revision)
    if kind == "github":
        return Site(f"https://raw.githubusercontent.com/{repo}/{revision}/{quoted}")
    return Site(f"{repo}/{quoted}" if repo else path)


def host(url: str) -> str:
    """Return the server of an address, with its port if that is not the usual one."""
    return urllib.parse.urlsplit(url).netloc or url


def innermost(reason: object) -> str:
    """Say why a connection failed at the lowest level, in one line without the error's number."""
    while isinstance(reason, BaseException):
        inner = reason.__cause__ or reason.__context__
        if inner is None:
            break
        reason = inner
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return " ".join(str(text).split())[:160]


def refusal(where: Site, status: int, retry_after: str | None = None) -> FetchFailed:
    """Return the error for a status other than success."""
    if status == 429 or status >= 500:
        wait = f"in {retry_after} s" if retry_after and retry_after.isdigit() else "later"
        hint = f"the server is busy: run the command again {wait}; what arrived whole is kept"
        return FetchFailed(f"{where.url} answered with status {status}", hint)
    hint = "bench data list NAME shows other sources, and where the file belongs"
    if where.repo:
        hint = "accept the terms on its page of the hub, then: hf auth login (or set HF_TOKEN)"
    return FetchRefused(f"{where.url} is not there, or not public (status {status})", hint)


@contextlib.contextmanager
def arriving(to: Path) -> Iterator[Path]:
    """Give a folder next to ``to`` for a file that arrives, and hold a lock on it.

    The remains of a killed process are removed first, all of its content at the end. Raises
    FetchFailed if the disk cannot be written.
    """
    folder = to.with_name(to.name + ".arriving")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with lock(to.with_name(to.name + ".lock")):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise FetchFailed(
            f"{to} cannot be written ({error.strerror or error})", DISK_HINT
        ) from None


def download(
    url: str, to: Path, *, sha256: str | None = None, most_bytes: int = MOST_BYTES
) -> None:
    """Fetch a file that is not on the hub into ``to``.

    An existing file with the checksum ``sha256`` stays; two processes take turns. Without a
    checksum, the server has to announce the length, and the file must have it. Raises FetchFailed
    (refused, unreachable, broken off, no network allowed, disk full, larger than ``most_bytes``) or
    DataDamaged (wrong checksum); then ``to`` is unchanged.
    """
    check_online(url)
    with arriving(to) as folder:
        if sha256 is not None and to.is_file() and file_sha256(to) == sha256:
            return
        length = _retrieve(url, folder / to.name, sha256, most_bytes)
        size = (folder / to.name).stat().st_size
        if sha256 is None and (length != size or not size):
            announced = f"{length:,} bytes were announced" if length else "no length was announced"
            raise FetchFailed(
                f"{url} has no known checksum, {size:,} bytes arrived, and {announced}",
                "nothing was stored; run the command again",
            )
        share_files(folder)  # pooch writes through a temporary file, which others cannot read
        os.replace(folder / to.name, to)


def _retrieve(url: str, to: Path, sha256: str | None, most_bytes: int) -> int:
    """Let pooch write a file, and return the length that the server announced, 0 if none.

    Raises FetchFailed, DataDamaged, and OSError if the disk fails.
    """
    import pooch
    import requests
    from rich.progress import DownloadColumn, TimeRemainingColumn

    from bench.base.bars import make_bars

    pooch.get_logger().setLevel("ERROR")
    options: Any = {
        "headers": {"User-Agent": "sentence-bench", "Accept-Encoding": "identity"},
        "timeout": TIMEOUT,
        "verify": os.environ.get("SSL_CERT_FILE") or True,
    }
    try:
        with make_bars(DownloadColumn(), TimeRemainingColumn()) as bars:
            progress = DownloadProgress(url, most_bytes, bars)
            downloader = pooch.HTTPDownloader(progress, chunk_size=BLOCK, **options)
            pooch.retrieve(url, sha256, fname=to.name, path=to.parent, downloader=downloader)
        return progress.total
    except requests.HTTPError as error:
        answer: Any = error.response
        after = answer.headers.get("Retry-After")
        raise refusal(Site(url), answer.status_code, after) from None
    except requests.RequestException as error:
        raise FetchFailed(f"{url} cannot be fetched ({innermost(error)})", NO_NETWORK) from None
    except ValueError:
        raise DataDamaged(
            f"{url} has the wrong checksum: sha256 {str(sha256)[:12]} was expected",
            "nothing was stored; the file has changed at its source, or was altered on the way",
        ) from None


class DownloadProgress:
    """Shows how far pooch is in a bar on a terminal, and ends a download that is too large.

    ``total``: the announced length, which pooch sets; 0 if there is none.
    """

    def __init__(self, url: str, most_bytes: int, bars: Progress) -> None:
        self.url = url
        self.most_bytes = most_bytes
        self.bars = bars
        self.bar = bars.add_task(url.rpartition("/")[2], total=None)
        self.total = 0
        self.arrived = 0

    def update(self, size: int) -> None:
        """Count ``size`` more bytes; the last block counts as a full one.

        Raises FetchFailed if more are announced or have arrived than allowed.
        """
        self.arrived += size
        if max(self.total, self.arrived - BLOCK) > self.most_bytes:
            raise FetchFailed(
                f"{self.url} is larger than allowed ({self.most_bytes:,} bytes)",
                "nothing was stored; this is not the expected file",
            )
        self.bars.update(self.bar, advance=size, total=self.total or None)

    def reset(self) -> None:
        """Begin to count again: pooch does so when all has arrived."""
        self.arrived = 0
        self.bars.reset(self.bar)

    def close(self) -> None:
        """Do nothing: the bar goes when the download ends."""


def check_network(urls: Iterable[str]) -> None:
    """Raise FetchFailed if none of these servers answers a request for its front page."""
    import requests

    problems: dict[str, str] = {}
    servers = dict.fromkeys(urllib.parse.urlsplit(url)[:2] for url in urls)
    verify = os.environ.get("SSL_CERT_FILE") or True
    for scheme, server in servers:
        try:
            requests.head(f"{scheme}://{server}/", timeout=8.0, verify=verify)
            return
        except (requests.ConnectionError, requests.Timeout) as error:
            problems[server] = innermost(error)
        except requests.RequestException:  # a proxy that only the hub's client knows
            return
    if problems:
        raise FetchFailed(
            f"no network: {list_names(problems)} cannot be reached "
            f"({next(iter(problems.values()))})",
            NO_NETWORK,
        )
