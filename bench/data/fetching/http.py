"""One GET: which address a source has, whether there is a network, what a refusal means, how long to wait before the next try."""

from __future__ import annotations

import email.utils
import http.client
import os
import queue
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bench.base.errors import FetchFailed

if TYPE_CHECKING:
    from huggingface_hub.hf_api import DatasetInfo

T = TypeVar("T")

_reached: set[str] = set()
"""Hosts that have answered this process: where one of them is gone, it may come back soon."""
_unreached: dict[str, int] = {}
"""Of these, host -> requests in a row that found nobody there."""

TRIES = 4
"""Requests in a row that bring nothing before we give up."""

TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as dead."""
LONGEST_WAIT = 120.0
"""Seconds that a server's Retry-After may ask for; beyond that the user is told when to come back."""
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""


@dataclass(frozen=True)
class Site:
    """Where a file lies. ``token`` is sent to this host only, never to one that it redirects to."""

    url: str
    token: str | None = None
    login: str = ""
    """What to do where the site wants to know who asks."""


class Report(Protocol):
    """Who is told how it goes. ``total`` is None where the server does not say."""

    def start(self, name: str, total: int | None, done: int) -> None: ...

    def advance(self, count: int) -> None: ...

    def finish(self) -> None: ...

    def say(self, line: str) -> None: ...


class Quiet:
    """Tells nobody."""

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
        return Site(
            f"{endpoint()}/datasets/{repo}/resolve/{urllib.parse.quote(revision, safe='')}/{quoted}",
            _hub_token(),
            LOGIN,
        )
    if kind == "github":
        return Site(_mirrored(f"https://raw.githubusercontent.com/{repo}/{revision}/{quoted}"))
    if kind == "web":
        return Site(_mirrored(f"{repo}/{quoted}" if repo else path))
    raise ValueError(f"no site is called {kind}")


NO_NETWORK = "check the network, and HF_ENDPOINT, BENCH_MIRROR or a proxy where they are set"
LOGIN = "accept the terms on its page of the hub, then: hf auth login (or set HF_TOKEN)"


def _mirrored(url: str) -> str:
    mirror = (os.environ.get("BENCH_MIRROR") or "").rstrip("/")
    return f"{mirror}/{url.split('://', 1)[1]}" if mirror else url


def _hub_token() -> str | None:
    given = os.environ.get("HF_TOKEN")
    if given:
        return given
    from huggingface_hub import get_token

    return get_token()


def dataset_info(repo: str, revision: str) -> DatasetInfo:
    """What the hub says of a data set at a revision or name of one ("main"): its commit, files with their sizes, card.

    Raises FetchFailed or Passing.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    where = site("hub", repo, revision, "")
    try:
        api = HfApi(endpoint=endpoint(), token=where.token or False)
        info = api.dataset_info(repo, revision=revision, files_metadata=True, timeout=TIMEOUT)
    except HfHubHTTPError as error:
        _has_answered(host(where.url))
        raise refusal(
            where,
            error.response.status_code,
            {key.lower(): value for key, value in error.response.headers.items()},
        ) from None
    except Exception as error:  # the hub's client raises many kinds
        raise _unreachable(where.url, error) from None
    _has_answered(host(where.url))
    return info


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects and keeps what the hub says of a file before it sends us elsewhere."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        if not newurl.startswith(("http://", "https://")):
            raise urllib.error.URLError(f"redirected to {newurl[:60]}")
        self.told |= {
            key.lower(): value
            for key, value in headers.items()
            if key.lower().startswith("x-linked-")
        }
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Answer:
    """An open response: status, headers (names in lower case, with X-Linked-* of the redirects) and the body as a stream."""

    def __init__(self, response: Any, told: Mapping[str, str]) -> None:
        self.status: int = response.status
        self.headers = {**told, **{key.lower(): value for key, value in response.headers.items()}}
        self._response = response

    def read(self, size: int) -> bytes:
        return bytes(self._response.read(size))

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self._response.close()


def get(where: Site, headers: Mapping[str, str] | None = None) -> Answer:
    """One GET, redirects followed. 416 comes back as an answer.

    Raises FetchFailed for a refusal that stays (401, 403, 404 ...), Passing for what may be over soon.
    """
    redirects = _Redirects()
    try:
        every = {"User-Agent": "sentence-bench", "Accept-Encoding": "identity", **(headers or {})}
        request = urllib.request.Request(where.url, headers=every)
        if where.token:
            request.add_unredirected_header("Authorization", f"Bearer {where.token}")
        answer = Answer(
            urllib.request.build_opener(redirects).open(request, timeout=TIMEOUT), redirects.told
        )
        _has_answered(host(where.url))
        return answer
    except urllib.error.HTTPError as error:
        _has_answered(host(where.url))
        if error.code == 416:
            return Answer(error, {})
        with error:
            raise refusal(
                where, error.code, {key.lower(): value for key, value in error.headers.items()}
            ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _unreachable(where.url, getattr(error, "reason", None) or error) from None
    except ValueError as error:
        raise FetchFailed(
            f"{where.url} is no address: {error}", "check HF_ENDPOINT and BENCH_MIRROR"
        ) from None


def _unreachable(url: str, reason: object) -> FetchFailed | Passing:
    """Who never answered is not there; and the next of many files need not wait for what the first has found out."""
    there = host(url)
    what = f"{there} cannot be reached ({in_words(reason)})"
    _unreached[there] = _unreached.get(there, 0) + 1
    return (
        FetchFailed(what, NO_NETWORK)
        if there not in _reached or _unreached[there] > TRIES
        else Passing(what)
    )


def _has_answered(there: str) -> None:
    _reached.add(there)
    _unreached.pop(there, None)


def in_words(reason: object) -> str:
    """ "[Errno -2] Name or service not known" without the number."""
    return " ".join(
        str(getattr(reason, "strerror", None) or reason or type(reason).__name__).split()
    )[:100]


def retry(call: Callable[[], T], name: str, report: Report, sleep: Callable[[float], None]) -> T:
    """The result of a call that may raise Passing, tried again a few times. Raises FetchFailed in the end."""
    for failures in range(1, TRIES + 1):
        try:
            return call()
        except Passing as failure:
            if failures == TRIES:
                raise FetchFailed(
                    f"{name}: {failure}, {TRIES} times",
                    "check the network, then run the command again",
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
    if status in PASSING:
        wait = seconds_to_wait(headers.get("retry-after"))
        if wait is not None and wait > LONGEST_WAIT:
            return FetchFailed(
                f"{host(where.url)} asks to wait {_duration(wait)} before the next request (status {status})",
                f"run the command again in {_duration(wait)}; what has arrived is kept",
            )
        return Passing(
            {429: f"{host(where.url)} says: too many requests"}.get(
                status, f"{host(where.url)} answered {status}"
            ),
            wait,
        )
    said = headers.get("x-error-message", "")
    if status in (401, 403) and where.login:
        return FetchFailed(
            f"{where.url} is gated, private or not there (status {status}{': ' + said[:120] if said else ''})",
            where.login,
        )
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
        then = email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0.0, then - time.time())


def host(url: str) -> str:
    return urllib.parse.urlsplit(url).netloc or url


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


# --- whether there is a network at all, found out before anything is announced or asked for ---


def check_network(urls: Iterable[str], seconds: float = 8.0) -> None:
    """Raises FetchFailed, in one line, where none of these servers takes a connection. Nothing is asked of them.

    All are tried at the same time, each through its proxy where the environment names one.
    """
    wanted = dict.fromkeys(_door(url) for url in urls)
    answers: queue.Queue[tuple[tuple[str, int], str | BaseException | None]] = queue.Queue()

    def knock(door: tuple[str, int]) -> None:
        try:
            socket.create_connection(door, timeout=seconds).close()
            answers.put((door, None))
        except OSError as error:
            answers.put((door, in_words(error)))
        except BaseException as error:  # for the thread that waits
            answers.put((door, error))

    for door in wanted:
        threading.Thread(
            target=knock, args=(door,), daemon=True
        ).start()  # a name that nobody looks up cannot be given up
    until, problems = (
        time.monotonic() + seconds,
        {door: f"no answer in {seconds:.0f} s" for door in wanted},
    )
    for _ in wanted:
        try:
            door, problem = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            break
        if problem is None:
            return
        if isinstance(problem, BaseException):
            raise problem
        problems[door] = problem
    if problems:
        names, why = [there for there, _ in problems], next(iter(problems.values()))
        who = f"{names[0]} cannot" if len(names) == 1 else f"neither {' nor '.join(names)} can"
        raise FetchFailed(f"no network: {who} be reached ({why})", NO_NETWORK)


def _door(url: str) -> tuple[str, int]:
    """Where a connection for an address goes: its server, or the proxy before it."""
    parts = urllib.parse.urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        parts = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}", scheme="http")
    return parts.hostname or parts.netloc, parts.port or {"https": 443}.get(parts.scheme, 80)
