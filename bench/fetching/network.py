"""Whether there is a network at all, found out before anything is announced or asked for."""

from __future__ import annotations

import queue
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable

from bench.errors import FetchFailed
from bench.fetching.http import NO_NETWORK, in_words


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
        threading.Thread(target=knock, args=(door,), daemon=True).start()  # a name that nobody looks up cannot be given up
    until, problems = time.monotonic() + seconds, {door: f"no answer in {seconds:.0f} s" for door in wanted}
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
