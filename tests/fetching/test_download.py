"""One file from a server that is slow, breaks off, lies, refuses, or has to wait for room."""

from __future__ import annotations

import email.utils
import errno
import hashlib
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub import StandInHub

from bench.base.errors import BenchError, DataDamaged, FetchFailed
from bench.data.fetching import TRIES, Site, check_network, download, offline_now, site

DATA = np.random.default_rng(3).bytes(700_000)
SHA = hashlib.sha256(DATA).hexdigest()


class Heard:
    """A report that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.starts: list[tuple[str, int | None, int]] = []
        self.count = 0

    def start(self, name: str, total: int | None, done: int) -> None:
        self.starts.append((name, total, done))

    def advance(self, count: int) -> None:
        self.count += count

    def finish(self) -> None: ...

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture(params=["web", "hub"])
def place(hub: StandInHub, request: pytest.FixtureRequest) -> Site:
    if request.param == "web":
        return Site(hub.serve("files/data.bin", DATA))
    revision = hub.add("dataset", "owner/name", {"data.bin": DATA})
    return site("hub", "owner/name", revision, "data.bin")


@pytest.fixture
def web(hub: StandInHub) -> Site:
    return Site(hub.serve("files/data.bin", DATA))


def remaining(folder: Path) -> set[str]:
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}
    return names - {"hf-home"}


def test_a_whole_file_arrives_once(place: Site, hub: StandInHub, tmp_path: Path) -> None:
    heard = Heard()
    assert download(place, tmp_path / "data.bin", sha256=SHA, report=heard) == SHA
    assert (tmp_path / "data.bin").read_bytes() == DATA and remaining(tmp_path) == {"data.bin"}
    assert heard.starts == [("data.bin", len(DATA), 0)] and heard.count == len(DATA)
    asked = len(hub.requests)
    assert download(place, tmp_path / "data.bin", sha256=SHA) == SHA and len(hub.requests) == asked
    (tmp_path / "data.bin").write_bytes(DATA[:-1])
    assert download(place, tmp_path / "data.bin", sha256=SHA) == SHA and len(hub.requests) > asked


@pytest.mark.parametrize("after", [0, 300_000, len(DATA) - 1])
def test_a_cut_download_is_tried_again(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float], after: int
) -> None:
    hub.fault("data.bin", cut_after=after)
    assert download(place, tmp_path / "data.bin", sha256=SHA, sleep=waits.append) == SHA
    assert remaining(tmp_path) == {"data.bin"}


def test_a_server_that_stops_sending_counts_as_gone(
    web: Site,
    hub: StandInHub,
    tmp_path: Path,
    waits: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.data.fetching.TIMEOUT", 0.2)
    hub.fault("data.bin", slow=0.6)
    heard = Heard()
    assert download(web, tmp_path / "data.bin", sleep=waits.append, report=heard) == SHA
    assert waits == [1.0] and "next try in 1 s" in heard.lines[0]


def test_another_checksum_is_refused_and_nothing_stays(place: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"before")
    with pytest.raises(DataDamaged, match="is not what it should be"):
        download(place, tmp_path / "data.bin", sha256="0" * 64)
    assert (tmp_path / "data.bin").read_bytes() == b"before"
    assert remaining(tmp_path) == {"data.bin"}


@pytest.mark.parametrize(
    ("fault", "message", "hint"),
    [
        ({"status": 404}, "is not there", "moved or removed"),
        ({"status": 401}, "not open to us", "by hand"),
        ({"status": 400}, "answered 400", ""),
        ({"status": 429, "headers": {"Retry-After": "3600"}}, "asks to wait 3600 s", "after that"),
    ],
)
def test_a_refusal_that_stays_is_not_asked_again(
    web: Site,
    hub: StandInHub,
    tmp_path: Path,
    waits: list[float],
    fault: dict[str, Any],
    message: str,
    hint: str,
) -> None:
    hub.fault("data.bin", times=None, **fault)
    with pytest.raises(FetchFailed, match=message) as failure:
        download(web, tmp_path / "data.bin", sleep=waits.append)
    assert hint in (failure.value.hint or "") and len(hub.requests) == 1
    assert waits == [] and remaining(tmp_path) == set()


def test_what_may_pass_is_tried_again_after_the_wait_that_is_asked_for(
    web: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    later = email.utils.formatdate(time.time() + 30, usegmt=True)
    hub.fault("data.bin", status=429, headers={"Retry-After": "7"})
    hub.fault("data.bin", status=503, headers={"Retry-After": later})
    hub.fault("data.bin", status=500)
    assert download(web, tmp_path / "data.bin", sleep=waits.append) == SHA
    assert waits[0] == 7.0 and 20 < waits[1] <= 30 and waits[2] == 4.0
    hub.fault("data.bin", status=500, times=None)
    with pytest.raises(FetchFailed, match=f"answered 500, {TRIES} times"):
        download(web, tmp_path / "other.bin", sleep=waits.append)


def test_no_server(tmp_path: Path, waits: list[float]) -> None:
    with pytest.raises(FetchFailed, match=r"127.0.0.1:9 cannot be reached \(.*refused"):
        download(Site("http://127.0.0.1:9/data.bin"), tmp_path / "data.bin", sleep=waits.append)
    with pytest.raises(BenchError, match="is not an address"):
        download(Site("no address"), tmp_path / "x")


def test_whether_there_is_a_network(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FetchFailed, match="^no network: neither 127.0.0.1:9 nor localhost:9 can"):
        check_network(["http://127.0.0.1:9/a", "http://localhost:9/b", "http://localhost:9/c"])
    check_network(["http://127.0.0.1:9/a", hub.url])
    check_network([])
    monkeypatch.setenv("http_proxy", hub.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name)
    check_network(["http://nowhere.invalid/a"])  # what goes through a proxy is where the proxy is


def test_a_gated_data_set_names_the_login_command(hub: StandInHub, tmp_path: Path) -> None:
    hub.add("dataset", "owner/gated", {"a.txt": b"a"}, gated=True)
    with pytest.raises(FetchFailed, match="gated, private or not there") as failure:
        download(site("hub", "owner/gated", "main", "a.txt"), tmp_path / "a.txt")
    assert "hf auth login" in (failure.value.hint or "")


def test_the_token_goes_to_the_hub_and_not_where_it_redirects(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("dataset", "owner/gated", {"data.tar": DATA}, gated=True)
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    assert download(site("hub", "owner/gated", "main", "data.tar"), tmp_path / "data.tar") == SHA
    content = [one for one in hub.requests if one.headers["host"].startswith("localhost")]
    assert content and all("authorization" not in one.headers for one in content)


def test_room_and_size_are_checked_before_the_disk_is_full(
    web: Site, place: Site, hub: StandInHub, tmp_path: Path
) -> None:
    with pytest.raises(FetchFailed, match=r"needs 1 MB, and .* has 0 MB free"):
        download(place, tmp_path / "data.bin", free=lambda _: 1000)
    with pytest.raises(FetchFailed, match=r"larger \(.* bytes\) than it may be \(1,000\)"):
        download(place, tmp_path / "data.bin", most_bytes=1000)
    hub.fault("data.bin", hide_length=True)
    with pytest.raises(FetchFailed, match=r"larger \(.* bytes\) than it may be \(1,000\)"):
        download(web, tmp_path / "data.bin", most_bytes=1000)
    assert remaining(tmp_path) <= {"data.bin.part.hub"}


def test_a_disk_that_cannot_be_written(
    web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(FetchFailed, match="cannot be written"):
        download(web, tmp_path / "file" / "data.bin")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bench.data.fetching.os.replace", full)
    with pytest.raises(FetchFailed, match="No space left"):
        download(web, tmp_path / "data.bin")
    assert not (tmp_path / "data.bin").exists()


def test_two_processes_fetch_one_file_once(web: Site, hub: StandInHub, tmp_path: Path) -> None:
    hub.fault("data.bin", slow=0.05, times=None)
    code = (
        "import sys; from pathlib import Path; from bench.data.fetching import Site, download;"
        "download(Site(sys.argv[1]), Path(sys.argv[2]), sha256=sys.argv[3])"
    )
    command = [sys.executable, "-c", code, web.url, str(tmp_path / "data.bin"), SHA]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert len(hub.asked("data.bin")) == 1 and (tmp_path / "data.bin").read_bytes() == DATA


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_ENDPOINT", "BENCH_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    raw = "raw.githubusercontent.com/o/n/c0ffee/a/b"
    hub_file = "/datasets/o/n/resolve/main/a%20b.txt"
    assert site("hub", "o/n", "main", "a b.txt").url == "https://huggingface.co" + hub_file
    assert site("github", "o/n", "c0ffee", "a/b").url == "https://" + raw
    assert site("web", "http://host/x", "", "y.zip").url == "http://host/x/y.zip"
    monkeypatch.setenv("BENCH_MIRROR", "http://mirror/")
    monkeypatch.setenv("HF_ENDPOINT", "http://hub/")
    assert site("github", "o/n", "c0ffee", "a/b").url == "http://mirror/" + raw
    assert site("hub", "o/n", "main", "a b.txt").url == "http://hub" + hub_file


def test_offline_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, offline in (("1", True), ("true", True), ("0", False), ("", False)):
        monkeypatch.setenv("HF_HUB_OFFLINE", value)
        assert offline_now() is offline
