"""One file from a server that is slow, breaks off, lies, refuses, or has to wait for room."""

from __future__ import annotations

import errno
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub import StandInHub

from bench.base.errors import DataDamaged, FetchFailed
from bench.data.fetching import Site, check_network, download, offline_now, site

DATA = np.random.default_rng(3).bytes(700_000)
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds: list[float] = []
    monkeypatch.setattr("bench.data.fetching.sleep", seconds.append)
    return seconds


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
    assert download(place, tmp_path / "data.bin", sha256=SHA) == SHA
    assert (tmp_path / "data.bin").read_bytes() == DATA and remaining(tmp_path) == {"data.bin"}
    asked = len(hub.requests)
    assert download(place, tmp_path / "data.bin", sha256=SHA) == SHA and len(hub.requests) == asked
    (tmp_path / "data.bin").write_bytes(DATA[:-1])
    assert download(place, tmp_path / "data.bin", sha256=SHA) == SHA and len(hub.requests) > asked


@pytest.mark.parametrize("after", [0, 300_000, len(DATA) - 1])
def test_a_cut_download_is_tried_again(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float], after: int
) -> None:
    hub.fault("data.bin", cut_after=after)
    assert download(place, tmp_path / "data.bin", sha256=SHA) == SHA
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
    lines: list[str] = []
    assert download(web, tmp_path / "data.bin", say=lines.append) == SHA
    assert waits == [1.0] and "next try in 1 s" in lines[0]


def test_another_checksum_is_refused_and_nothing_stays(place: Site, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"before")
    with pytest.raises(DataDamaged, match="is not what it should be"):
        download(place, tmp_path / "data.bin", sha256="0" * 64)
    assert (tmp_path / "data.bin").read_bytes() == b"before"
    assert remaining(tmp_path) == {"data.bin"}


@pytest.mark.parametrize(
    ("fault", "message", "hint"),
    [
        ({"status": 404}, r"is not there, or not open to us \(status 404", "what else serves"),
        ({"status": 429, "headers": {"Retry-After": "3600"}}, "answered 429", "wait 3600 s"),
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
        download(web, tmp_path / "data.bin")
    assert hint in (failure.value.hint or "") and len(hub.requests) == 1
    assert waits == [] and remaining(tmp_path) == set()


def test_what_may_pass_is_tried_again_after_the_wait_that_is_asked_for(
    web: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    hub.fault("data.bin", status=429, headers={"Retry-After": "7"})
    hub.fault("data.bin", status=503, headers={"Retry-After": "a date"})
    hub.fault("data.bin", status=500)
    assert download(web, tmp_path / "data.bin") == SHA
    assert waits == [7.0, 2.0, 4.0]
    hub.fault("data.bin", status=500, times=None)
    with pytest.raises(FetchFailed, match="answered 500"):
        download(web, tmp_path / "other.bin")


def test_no_server(tmp_path: Path, waits: list[float]) -> None:
    with pytest.raises(FetchFailed, match=r"127.0.0.1:9 cannot be reached \(.*refused"):
        download(Site("http://127.0.0.1:9/data.bin"), tmp_path / "data.bin")


def test_whether_there_is_a_network(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FetchFailed, match="^no network: 127.0.0.1:9 and localhost:9 cannot"):
        check_network(["http://127.0.0.1:9/a", "http://localhost:9/b", "http://localhost:9/c"])
    check_network(["http://127.0.0.1:9/a", hub.url])
    check_network([])
    monkeypatch.setenv("http_proxy", hub.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name)
    check_network(["http://nowhere.invalid/a"])  # what goes through a proxy is where the proxy is


def test_a_gated_data_set_names_the_login_command(hub: StandInHub, tmp_path: Path) -> None:
    hub.add("dataset", "owner/gated", {"a.txt": b"a"}, gated=True)
    with pytest.raises(FetchFailed, match="not there, or not open to us") as failure:
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


def test_a_file_that_is_too_large_is_given_up_before_it_has_filled_the_disk(
    web: Site, place: Site, hub: StandInHub, tmp_path: Path
) -> None:
    with pytest.raises(FetchFailed, match=r"larger than it may be \(1,000 bytes\)"):
        download(place, tmp_path / "data.bin", most_bytes=1000)
    hub.fault("data.bin", hide_length=True)
    with pytest.raises(FetchFailed, match=r"larger than it may be \(1,000 bytes\)"):
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
