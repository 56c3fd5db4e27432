"""Fetch files from the network, complete and checked or not at all, with the Hugging Face hub's
client.

So data and models use the same proxies (SOCKS too) and certificates, which the environment names.
Nothing here depends on data sets or models.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

from bench.base.errors import DataDamaged, FetchFailed
from bench.base.hashes import file_sha256
from bench.base.locks import lock
from bench.base.text import list_names
from bench.data.announced import guard_client

T = TypeVar("T")
Say = Callable[[str], object]
"""Shows one line to the user."""

WAITS = (1.0, 2.0, 4.0)
"""Seconds before each further try, unless the server asks for another wait."""
TIMEOUT = 30.0
"""A connection counts as dead after so many seconds without a byte."""
LONGEST_WAIT = 120.0
"""The longest Retry-After, in seconds, that is waited for; beyond it the command ends."""
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses that the same request may succeed after."""
MOST_BYTES = 10_000_000_000
"""Largest size of a file outside the hub, unless a smaller limit is known."""
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
"""Errors of the disk itself, which name no file."""
BLOCK = 1 << 18
NO_NETWORK = (
    "check the network, and HF_ENDPOINT, BENCH_MIRROR, SSL_CERT_FILE or the proxy if they are set; "
    "then run the command again"
)
REFUSED_TOKEN = (
    "the hub refuses your token; trying without it (remove HF_TOKEN, or log in again: hf auth "
    "login)"
)
LOGIN = "accept the terms on its page of the hub, then: hf auth login (or set HF_TOKEN)"


@dataclass(frozen=True)
class Site:
    """The address of a file.

    ``kind`` ("dataset" or "model"), ``repo``, ``revision`` and ``path`` are set for the hub;
    elsewhere only ``url`` is, and ``second_url`` if that has the same bytes.
    """

    url: str
    kind: str = ""
    repo: str = ""
    revision: str = ""
    path: str = ""
    second_url: str = ""


class Passing(FetchFailed):
    """A failure that may pass; ``wait``: the seconds that the server asked for."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message, NO_NETWORK)
        self.wait = wait


def silent(line: str) -> None:
    """Show nothing."""


def offline_now() -> bool:
    """Return True if HF_HUB_OFFLINE (or TRANSFORMERS_OFFLINE) forbids connections."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(name, "0").upper() in ("1", "ON", "YES", "TRUE"):
            return True
    return False


def endpoint() -> str:
    """Return the hub's address: $HF_ENDPOINT if that is set."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def site(kind: str, repo: str, revision: str, path: str) -> Site:
    """Return the address of a file.

    ``kind``: "hub" (a data set of the Hugging Face hub), "model" (one of its models, as a whole),
    "github" or "web" (``repo`` is the address of its folder; without one, ``path`` is the whole
    address).

    $HF_ENDPOINT replaces the hub's address. $BENCH_MIRROR is a server with the other sites' files
    below their host names: MIRROR/raw.githubusercontent.com/owner/name/commit/path.
    """
    quoted = urllib.parse.quote(path)
    if kind == "hub":
        commit = urllib.parse.quote(revision, safe="")
        return Site(
            f"{endpoint()}/datasets/{repo}/resolve/{commit}/{quoted}",
            "dataset",
            repo,
            revision,
            path,
        )
    if kind == "model":
        return Site(f"{endpoint()}/{repo}/tree/{revision}", "model", repo, revision)
    if kind == "github":
        # GitHub answers about 60 requests per hour; jsDelivr serves the same files
        return Site(
            mirrored(f"https://raw.githubusercontent.com/{repo}/{revision}/{quoted}"),
            second_url=mirrored(f"https://cdn.jsdelivr.net/gh/{repo}@{revision}/{quoted}"),
        )
    if repo:
        return Site(mirrored(f"{repo}/{quoted}"))
    return Site(mirrored(path))


def mirrored(url: str) -> str:
    """Return the address on $BENCH_MIRROR if that is set, else the address itself."""
    mirror = (os.environ.get("BENCH_MIRROR") or "").rstrip("/")
    if not mirror:
        return url
    _, _, without_scheme = url.partition("://")
    return f"{mirror}/{without_scheme}"


def host(url: str) -> str:
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


def of_the_disk(error: Exception) -> bool:
    return isinstance(error, OSError) and (error.filename is not None or error.errno in DISK)


def unreachable(url: str, error: Exception) -> Passing:
    return Passing(f"{host(url)} cannot be reached ({innermost(error)})")


def download(
    where: Site,
    to: Path,
    *,
    sha256: str | None = None,
    most_bytes: int = MOST_BYTES,
    say: Say = silent,
) -> str:
    """Fetch ``where`` into the file ``to`` and return its sha256.

    An existing file with the checksum ``sha256`` stays.

    Two processes take turns. Failures that may pass are retried, after the time in Retry-After.
    Raises FetchFailed (refused, unreachable, disk full, larger than ``most_bytes`` outside the hub)
    or DataDamaged (wrong checksum); then ``to`` is unchanged.
    """
    arriving = to.with_name(to.name + ".part")

    def fetch() -> None:
        if where.repo:
            _from_hub(where, arriving, say)
        else:
            _from_either(where, arriving, most_bytes)

    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with lock(to.with_name(to.name + ".lock")):
            if sha256 is not None and to.is_file() and file_sha256(to) == sha256:
                return sha256
            retry(fetch, say)
            arrived = file_sha256(arriving)
            if sha256 not in (None, arrived):
                raise DataDamaged(
                    f"{where.url} has the wrong checksum: sha256 {arrived[:12]} found, "
                    f"{sha256[:12]} expected",
                    "nothing was stored; the file has changed at its source, or was altered on "
                    "the way",
                )
            os.replace(arriving, to)
            return arrived
    except OSError as error:
        raise FetchFailed(
            f"{to} cannot be written ({error.strerror or error})",
            "check the disk's free space and the folder's permissions, then run the command again",
        ) from None
    finally:
        with contextlib.suppress(OSError):
            arriving.unlink()


def _from_either(where: Site, to: Path, most_bytes: int) -> None:
    """Fetch from the address, or from the second one if that fails. Raises the first failure."""
    failures: list[FetchFailed] = []
    for url in filter(None, (where.url, where.second_url)):
        try:
            return _from_web(url, to, most_bytes)
        except FetchFailed as failure:
            failures.append(failure)
    raise failures[0]


def _from_web(url: str, to: Path, most_bytes: int) -> None:
    """Fetch with one GET.

    Raises FetchFailed for a final refusal, Passing for a failure that may pass, OSError if the disk
    fails.
    """
    from huggingface_hub import get_session
    from tqdm import tqdm

    options: Any = {
        "headers": {"User-Agent": "sentence-bench", "Accept-Encoding": "identity"},
        "timeout": TIMEOUT,
        "follow_redirects": True,
    }
    bar: Any = {"unit": "B", "unit_scale": True, "leave": False, "disable": None}
    try:
        with get_session().stream("GET", url, **options) as answer:
            if not answer.is_success:
                raise refusal(Site(url), answer.status_code, answer.headers)
            total = int(answer.headers.get("Content-Length", 0))
            arrived = 0
            with tqdm(total=total or None, **bar) as shown, to.open("wb") as file:
                for block in answer.iter_bytes(BLOCK):
                    arrived += len(block)
                    if max(total, arrived) > most_bytes:
                        raise FetchFailed(
                            f"{url} is larger than allowed ({most_bytes:,} bytes)",
                            "nothing was stored; this is not the expected file",
                        )
                    shown.update(file.write(block))
    except Exception as error:  # the client's own HTTP library has errors of its own
        if isinstance(error, FetchFailed) or of_the_disk(error):
            raise
        raise unreachable(url, error) from None


def _from_hub(where: Site, to: Path, say: Say) -> None:
    """Fetch with the hub's client, which continues a download that was cut.

    Raises as :func:`_from_web`.
    """
    from huggingface_hub import hf_hub_download

    folder = to.with_name(to.name + ".hub")
    fetched = on_hub(
        lambda token: hf_hub_download(
            where.repo,
            where.path,
            repo_type=where.kind,
            revision=where.revision,
            local_dir=folder,
            endpoint=endpoint(),
            etag_timeout=TIMEOUT,
            token=token,
        ),
        where,
        say,
    )
    os.replace(fetched, to)
    shutil.rmtree(folder, ignore_errors=True)


def repository_info(where: Site, say: Say = silent) -> Any:
    """Return the hub's DatasetInfo or ModelInfo at a revision or branch.

    It has the commit, the files with their sizes, and the card. Raises FetchFailed.
    """
    from huggingface_hub import HfApi

    def call(token: str | bool | None) -> Any:
        api = HfApi(endpoint=endpoint(), token=token)
        get = api.dataset_info if where.kind == "dataset" else api.model_info
        return get(where.repo, revision=where.revision, files_metadata=True, timeout=TIMEOUT)

    return retry(lambda: on_hub(call, where, say), say)


def on_hub(call: Callable[[str | bool | None], T], where: Site, say: Say) -> T:
    """Return the result of a call of the hub's client, which gets the token.

    The call is repeated without a token if the hub refuses the token itself. Raises as
    :func:`_from_web`.
    """
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    guard_client()
    try:
        try:
            return call(None)
        except HfHubHTTPError as error:
            if "Invalid credentials" not in str(error):
                raise
            say(REFUSED_TOKEN)
            return call(False)
    except Exception as error:  # the client's own HTTP library has errors of its own
        cause: BaseException | None = error
        if isinstance(error, LocalEntryNotFoundError):
            cause = error.__cause__
        if isinstance(cause, HfHubHTTPError) and cause.response is not None:
            raise refusal(where, cause.response.status_code, cause.response.headers) from None
        if isinstance(error, FetchFailed) or of_the_disk(error):
            raise
        raise unreachable(where.url, error) from None


def retry(call: Callable[[], T], say: Say) -> T:
    """Return the result of a call that may raise Passing.

    It is tried again after the time that the server asks for, else after 1, 2, 4 seconds.
    """
    for usual in WAITS:
        try:
            return call()
        except Passing as failure:
            wait = usual if failure.wait is None else failure.wait
            say(f"{failure.message}; next try in {wait:.0f} s")
            sleep(wait)
    return call()


def refusal(where: Site, status: int, headers: Mapping[str, str]) -> FetchFailed:
    """Return the error for a status other than success; Passing if the request may succeed soon."""
    if status not in PASSING:
        hint = "bench data list NAME shows other sources, and where the file belongs"
        if where.repo:
            hint = LOGIN
        return FetchFailed(f"{where.url} is not there, or not public (status {status})", hint)
    retry_after = headers.get("Retry-After", "")
    wait = float(retry_after) if retry_after.isdigit() else None
    if wait is not None and wait > LONGEST_WAIT:
        return FetchFailed(
            f"{where.url} answered {status}",
            f"the server asks to wait {wait:.0f} s; run the command again after that",
        )
    return Passing(f"{host(where.url)} answered {status}", wait)


def check_network(urls: Iterable[str]) -> None:
    """Raise FetchFailed if none of these servers answers a request for its front page."""
    from huggingface_hub import get_session

    problems: dict[str, str] = {}
    servers = dict.fromkeys(urllib.parse.urlsplit(url)[:2] for url in urls)
    for scheme, server in servers:
        try:
            get_session().head(f"{scheme}://{server}/", timeout=8.0)
            return
        except Exception as error:  # the client's own HTTP library has errors of its own
            problems[server] = innermost(error)
    if problems:
        raise FetchFailed(
            f"no network: {list_names(problems)} cannot be reached "
            f"({next(iter(problems.values()))})",
            NO_NETWORK,
        )
