"""Who owns a folder, between hosts: a lease that its owner renews, and that another takes over once it has stood unchanged for two minutes.

A lease is the folder ``.owner-N``, made by ``mkdir``, which on every file system only one of several makers succeeds in. In it lies a file
named by a token of the owner, which the owner rewrites every ten seconds. Nobody compares clocks: who wants the folder watches that file
with a clock of its own, and when it stood still for ``TAKEN_AFTER`` seconds makes ``.owner-N+1`` and moves ``.owner-N`` away.

What an owner writes is written inside its lease first and then renamed to its place. So who lost the lease while it stood still
has nothing left that it could rename: between a look at the lease and a write nothing can slip in.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError, OwnershipLost

TAKEN_AFTER = 120.0  # seconds that a lease stands unchanged, as who wants it watched
RENEWED_EVERY = 10.0
LOOK_EVERY = 1.0
GONE = (
    errno.ENOENT,
    errno.ESTALE,
    errno.ENOTDIR,
)  # what a file system answers where a lease was moved away
_NAME = re.compile(r"\.owner-([0-9]+)")
_held: dict[Path, Lease] = {}


class Busy(Exception):
    """The folder has an owner; the text says who."""


class Lease:
    """Held from :func:`take` until :meth:`release`, or until another process has taken it over (``lost``)."""

    def __init__(self, folder: Path, place: Path, token: str) -> None:
        self.folder, self.place, self.file = folder, place, place / token
        self.lost = False
        self._about = _about()
        self._count, self._end = 0, threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()
        _held[folder] = self

    def check(self) -> None:
        """Raises OwnershipLost where another process has taken the folder over."""
        if not self.lost:
            try:
                os.close(
                    os.open(self.file, os.O_RDONLY)
                )  # opened, not looked at: so NFS asks its server
                return
            except OSError as error:
                if error.errno not in GONE:
                    raise BenchError(
                        f"{self.place} cannot be read: {error.strerror}",
                        "the same command goes on later",
                    ) from None
        self.lost = True
        raise OwnershipLost(
            f"{self.folder.name} was taken over by another process while this one stood still or was cut off",
            "nothing more is written here; bench status says who goes on with it",
        )

    def renew(self) -> None:
        self._count += 1
        try:
            handle = os.open(self.file, os.O_WRONLY)  # never made anew
        except OSError as error:
            self.lost = self.lost or error.errno in GONE
            return
        try:
            with contextlib.suppress(OSError):  # a full disk
                os.pwrite(handle, _content(self._about, self._count), 0)
        finally:
            os.close(handle)

    def _keep(self) -> None:
        while not self._end.wait(RENEWED_EVERY) and not self.lost:
            self.renew()

    def release(self) -> None:
        _held.pop(self.folder, None)
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        if not self.lost and self.file.exists():
            try:
                _move_away(self.place)
            except OSError:  # a failing disk; what is left is nobody's once this process has ended
                shutil.rmtree(self.place, ignore_errors=True)


def lease_of(path: Path) -> Lease | None:
    """The lease of this process over ``path``."""
    if not _held:
        return None
    path = Path(os.path.abspath(path))
    return next(
        (lease for above in (path, *path.parents) if (lease := _held.get(above)) is not None), None
    )


def check_owned(path: Path) -> None:
    """Raises OwnershipLost where this process held a lease over ``path`` and does no more."""
    if (lease := lease_of(path)) is not None:
        lease.check()


def aside(path: Path) -> Path:
    """The folder in which what is to be renamed to ``path`` is written first. Raises OwnershipLost."""
    if (lease := lease_of(path)) is None:
        return path.parent
    lease.check()
    return lease.place


def take(
    folder: Path,
    *,
    alone: bool,
    wait_seconds: float = 0.0,
    say: Callable[[str], None] = lambda line: None,
) -> Lease:
    """Own ``folder``. Raises Busy where another process does and goes on doing so, OSError where nothing can be written.

    ``alone``: a lock says that nobody else on this machine works on it. A lease of another machine is watched, for as long as it does not
    change, whatever ``wait_seconds`` says: its owner may be dead.
    """
    folder = Path(os.path.abspath(folder))
    until, seen, since, told = time.monotonic() + wait_seconds, None, time.monotonic(), False
    while True:
        numbers = _numbers(folder)
        if not numbers:
            if (lease := _make(folder, 1)) is not None:
                return lease
            continue
        newest = folder / f".owner-{numbers[-1]}"
        content, holder = _look(newest)
        if content is None:
            continue  # released meanwhile
        now = time.monotonic()
        first = seen is None
        if content != seen:
            seen, since = content, now
        here = holder.get("place") == place()
        dead = (alone or not _alive(holder)) if here else now - since >= TAKEN_AFTER
        if dead:
            if (lease := _make(folder, numbers[-1] + 1)) is not None:
                for number in numbers:
                    _move_away(folder / f".owner-{number}")
                return lease
            continue
        changed = not first and since == now
        if now >= until and (here or changed):
            raise Busy(owner_words(holder))
        if not here and not told and now - since > RENEWED_EVERY / 2:
            say(
                f"owned by {owner_words(holder)}, of which nothing is heard: taken over if that stays so for {TAKEN_AFTER:.0f} s"
            )
            told = True
        time.sleep(min(LOOK_EVERY, TAKEN_AFTER / 10) if not here else 0.1)


def owner_of(folder: Path) -> str | None:
    """Who holds the lease over ``folder``, as far as it can be seen at once: "process 12 on host"; None where nobody, or a dead process."""
    numbers = _numbers(folder)
    if not numbers:
        return None
    _, holder = _look(folder / f".owner-{numbers[-1]}")
    if not holder or (holder.get("place") == place() and not _alive(holder)):
        return None
    return owner_words(holder)


def owner_words(holder: dict[str, Any]) -> str:
    return (
        f"process {holder.get('process', '?')} on {holder.get('host', 'another machine')}"
        if holder
        else "another process"
    )


def _make(folder: Path, number: int) -> Lease | None:
    """The lease of that number; None where another process was faster."""
    path, token = folder / f".owner-{number}", secrets.token_hex(8)
    try:
        path.mkdir()
    except FileExistsError:
        return None
    try:
        (path / token).write_bytes(_content(_about(), 0))
        if os.listdir(path) != [
            token
        ]:  # taken and let go meanwhile, and its number came again: whoever wrote first owns it
            (path / token).unlink(missing_ok=True)
            return None
    except FileNotFoundError:  # it stood empty for so long that another process took it
        return None
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        raise
    for left in folder.glob(".gone-*"):
        shutil.rmtree(left, ignore_errors=True)
    return Lease(folder, path, token)


def _move_away(path: Path) -> None:
    """At once, so that nothing in it can be renamed any more; then it is removed."""
    gone = path.with_name(f".gone-{secrets.token_hex(8)}")
    try:
        path.rename(gone)
    except FileNotFoundError:
        return
    shutil.rmtree(gone, ignore_errors=True)


def _numbers(folder: Path) -> list[int]:
    try:
        return sorted(
            int(match[1]) for name in os.listdir(folder) if (match := _NAME.fullmatch(name))
        )
    except FileNotFoundError:
        return []


def _look(lease: Path) -> tuple[tuple[tuple[str, bytes], ...] | None, dict[str, Any]]:
    """(what stands in a lease, what its owner says of itself); (None, {}) where it is gone."""
    try:
        names = sorted(name for name in os.listdir(lease) if re.fullmatch("[0-9a-f]{16}", name))
        content = tuple((name, (lease / name).read_bytes()) for name in names)
    except (FileNotFoundError, NotADirectoryError):
        return None, {}
    try:
        return content, dict(json.loads(content[0][1].decode().rstrip("\0"))) if content else {}
    except (ValueError, TypeError):
        return content, {}


def _about() -> dict[str, Any]:
    """What an owner says of itself."""
    return {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "began": _began(os.getpid()),
        "place": place(),
    }


def _content(about: dict[str, Any], count: int) -> bytes:
    return json.dumps({**about, "renewed": count}).encode().ljust(400)


@lru_cache
def place() -> str:
    """Where process numbers mean the same: this machine since it was started, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _began(process: int) -> str | None:
    """When a process of this machine began, in ticks; None where there is none of that number."""
    with contextlib.suppress(OSError, IndexError):
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return None if words[0] == "Z" else words[19]
    return None


def _alive(holder: dict[str, Any]) -> bool:
    process = holder.get("process")
    if not isinstance(process, int) or not Path("/proc/self").exists():
        return True
    return (began := _began(process)) is not None and began == holder.get("began")


# --- what a file system's locks are worth ---

LOCAL_LOCKS = re.compile(r"(^|,)(nolock|local_lock=(all|flock)|localflock)(,|$)")


def probe(folder: Path, mounts: str | None = None) -> str | None:
    """One line where locks on the file system of ``folder`` are refused, or are only seen by this machine although others share it."""
    kind, options = mount_of(folder, mounts)
    if (refused := _refuses(folder)) is not None:
        why = f"{kind} refuses locks ({refused})"
    elif kind.partition(".")[0] == "fuse":
        why = f"{kind} may keep locks to this machine ({options})"
    elif LOCAL_LOCKS.search(options):
        why = f"locks of {kind} stay on this machine ({options})"
    else:
        return None
    return f"{folder}: {why}; between machines a lease keeps runs apart, and one whose machine died is taken over after {TAKEN_AFTER:.0f} s"


def mount_of(folder: Path, mounts: str | None = None) -> tuple[str, str]:
    """(kind, options) of the file system that holds ``folder``, as the kernel lists them; ("unknown", "") where it lists none."""
    try:
        text = mounts if mounts is not None else Path("/proc/mounts").read_text()
    except OSError:
        return "unknown", ""
    longest, mount, path = -1, ("unknown", ""), os.path.realpath(folder)
    for line in text.splitlines():
        words = line.split()
        if len(words) < 4:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[1])
        if (path == point or path.startswith(point.rstrip("/") + "/")) and len(point) >= longest:
            longest, mount = len(point), (words[2], words[3])
    return mount


def _refuses(folder: Path) -> str | None:
    """Why a lock cannot be had in ``folder``; None where it can."""
    import fcntl

    existing = next(
        (parent for parent in (folder, *folder.absolute().parents) if parent.is_dir()), None
    )
    if existing is None:
        return None
    name = existing / f".probe-{secrets.token_hex(6)}"
    try:
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None  # nothing can be written: told where it matters
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except OSError as error:
        return error.strerror or str(error)
    finally:
        os.close(handle)
        with contextlib.suppress(OSError):
            name.unlink()
