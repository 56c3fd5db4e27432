"""One file from a server that is slow, breaks off, lies, refuses, or has to wait for room."""

from __future__ import annotations

import email.utils
import errno
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hub import StandInHub

from bench.base.errors import BenchError, DataDamaged, FetchFailed
from bench.data.fetching import Site, check_network, download, offline_now, site
from bench.data.fetching.http import TRIES, seconds_to_wait

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


@pytest.fixture
def place(hub: StandInHub) -> Site:
    return Site(hub.serve("files/data.bin", DATA))


def left(folder: Path) -> set[str]:
    return {
        path.name
        for path in folder.iterdir()
        if not path.name.endswith(".lock") and path.name != "hf-home"
    }


def test_a_whole_file_arrives_and_is_told(place: Site, tmp_path: Path) -> None:
    heard = Heard()
    got = download(place, tmp_path / "data.bin", sha256=SHA, report=heard)
    assert (got.sha256, got.bytes, got.fetched) == (SHA, len(DATA), True)
    assert (tmp_path / "data.bin").read_bytes() == DATA and left(tmp_path) == {"data.bin"}
    assert heard.starts == [("data.bin", len(DATA), 0)] and heard.count == len(DATA)


def test_what_is_there_and_right_is_not_asked_for(
    place: Site, hub: StandInHub, tmp_path: Path
) -> None:
    (tmp_path / "data.bin").write_bytes(DATA)
    assert not download(place, tmp_path / "data.bin", sha256=SHA).fetched and hub.requests == []
    (tmp_path / "data.bin").write_bytes(DATA[:-1])
    assert download(place, tmp_path / "data.bin", sha256=SHA).fetched and len(hub.requests) == 1


def test_a_slow_server_is_waited_for(place: Site, hub: StandInHub, tmp_path: Path) -> None:
    hub.fault("data.bin", slow=0.02)
    assert download(place, tmp_path / "data.bin").sha256 == SHA


def test_a_server_that_stops_sending_counts_as_gone(
    place: Site,
    hub: StandInHub,
    tmp_path: Path,
    waits: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bench.data.fetching.http.TIMEOUT", 0.2)
    hub.fault("data.bin", slow=0.6)
    heard = Heard()
    assert download(place, tmp_path / "data.bin", sleep=waits.append, report=heard).sha256 == SHA
    assert waits == [1.0] and "next try in 1 s" in heard.lines[0]


@pytest.mark.parametrize("after", [0, 1, 300_000, len(DATA) - 1])
def test_a_cut_download_goes_on_where_it_stopped(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float], after: int
) -> None:
    hub.fault("data.bin", cut_after=after)
    assert download(place, tmp_path / "data.bin", sha256=SHA, sleep=waits.append).sha256 == SHA
    first, second = hub.asked("data.bin")
    assert "range" not in first.headers and second.headers.get("range") == (
        f"bytes={after}-" if after else None
    )
    assert second.status == (206 if after else 200) and len(waits) == 1


def test_a_download_that_was_given_up_goes_on_in_the_next_call(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    hub.fault("data.bin", cut_after=400_000)
    hub.fault("data.bin", status=503, times=None)
    with pytest.raises(
        FetchFailed, match=r"answered 503, .* times; 400,000 bytes are kept"
    ) as failure:
        download(place, tmp_path / "data.bin", sleep=waits.append)
    assert (
        "goes on where it stopped" in (failure.value.hint or "")
        and not (tmp_path / "data.bin").exists()
    )
    assert waits == [1.0, 2.0, 4.0] and len(hub.requests) == TRIES
    hub.faults.clear()
    heard = Heard()
    assert download(place, tmp_path / "data.bin", report=heard).sha256 == SHA
    assert heard.starts == [("data.bin", len(DATA), 400_000)] and left(tmp_path) == {"data.bin"}


def test_a_file_that_changed_meanwhile_is_fetched_from_its_start(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    hub.fault("data.bin", cut_after=400_000)
    hub.fault("data.bin", status=503, times=TRIES)
    with pytest.raises(FetchFailed):
        download(place, tmp_path / "data.bin", sleep=waits.append)
    other = DATA[::-1]
    hub.serve("files/data.bin", other)
    assert download(place, tmp_path / "data.bin").sha256 == hashlib.sha256(other).hexdigest()
    assert hub.requests[-1].status == 200


def test_a_server_that_ignores_ranges_is_read_from_the_start(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    hub.fault("data.bin", cut_after=1000)
    hub.fault("data.bin", no_range=True)
    assert download(place, tmp_path / "data.bin", sleep=waits.append).sha256 == SHA
    assert [one.status for one in hub.requests] == [200, 200]


def test_a_part_that_is_complete_already_is_finished_without_its_bytes(
    place: Site, hub: StandInHub, tmp_path: Path
) -> None:
    download(place, tmp_path / "data.bin")
    hub.fault("data.bin", cut_after=400_000)
    hub.fault("data.bin", status=404, times=1)
    with pytest.raises(FetchFailed):
        download(place, tmp_path / "again.bin", sleep=lambda _: None)
    (tmp_path / "again.bin.part").write_bytes(DATA)
    assert download(place, tmp_path / "again.bin", sha256=SHA).sha256 == SHA
    assert hub.requests[-1].status == 416
    hub.fault("data.bin", cut_after=400_000)
    hub.fault("data.bin", status=404, times=1)
    with pytest.raises(FetchFailed):
        download(place, tmp_path / "third.bin", sleep=lambda _: None)
    (tmp_path / "third.bin.part").write_bytes(DATA + b"too much")
    assert download(place, tmp_path / "third.bin", sha256=SHA, sleep=lambda _: None).sha256 == SHA


def test_another_checksum_is_refused_and_nothing_is_kept(
    place: Site, hub: StandInHub, tmp_path: Path
) -> None:
    hub.fault("data.bin", wrong=b"<html>please log in</html>")
    with pytest.raises(DataDamaged, match=rf"\(26 bytes\) found, {SHA[:12]} expected"):
        download(place, tmp_path / "data.bin", sha256=SHA)
    assert left(tmp_path) == set()


def test_a_resumed_download_with_another_checksum_is_tried_once_more_from_the_start(
    place: Site, hub: StandInHub, tmp_path: Path
) -> None:
    hub.fault("data.bin", cut_after=1000)
    hub.fault("data.bin", wrong=b"x" * len(DATA))
    assert download(place, tmp_path / "data.bin", sha256=SHA, sleep=lambda _: None).sha256 == SHA
    assert [one.headers.get("range") for one in hub.requests] == [None, "bytes=1000-", None]


def test_the_checksum_that_the_hub_itself_names_is_held(hub: StandInHub, tmp_path: Path) -> None:
    revision = hub.add("dataset", "owner/name", {"data.tar": DATA})
    where = site("hub", "owner/name", revision, "data.tar")
    assert download(where, tmp_path / "data.tar").sha256 == SHA
    hub.fault("data.tar", wrong=DATA[:-1] + b"?")
    with pytest.raises(DataDamaged, match="is not what it should be"):
        download(where, tmp_path / "other.tar")


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (404, "is not there", "moved or removed"),
        (401, "not open to us", "by hand"),
        (403, "not open", "by hand"),
        (400, "answered 400", ""),
    ],
)
def test_a_refusal_that_stays_is_told_at_once(
    place: Site,
    hub: StandInHub,
    tmp_path: Path,
    waits: list[float],
    status: int,
    message: str,
    hint: str,
) -> None:
    hub.fault("data.bin", status=status, times=None)
    with pytest.raises(FetchFailed, match=message) as failure:
        download(place, tmp_path / "data.bin", sleep=waits.append)
    assert str(status) in failure.value.message and hint in (failure.value.hint or "")
    assert len(hub.requests) == 1 and waits == [] and left(tmp_path) == set()


@pytest.mark.parametrize("token", [None, "hf_stranger"])
def test_a_gated_data_set_names_the_login_command(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    hub.add("dataset", "owner/gated", {"a.txt": b"a"}, gated=True)
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(FetchFailed, match="gated, private or not there") as failure:
        download(site("hub", "owner/gated", "main", "a.txt"), tmp_path / "a.txt")
    assert "hf auth login" in (failure.value.hint or "")


def test_the_token_goes_to_the_hub_and_not_where_it_redirects(
    hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("dataset", "owner/gated", {"data.tar": DATA}, gated=True)
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    assert (
        download(site("hub", "owner/gated", "main", "data.tar"), tmp_path / "data.tar").sha256
        == SHA
    )
    asked, content = hub.requests
    assert asked.headers["authorization"] == "Bearer hf_good" and asked.status == 302
    assert "authorization" not in content.headers and content.headers["host"].startswith(
        "localhost"
    )


def test_retry_after_is_obeyed(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    hub.fault("data.bin", status=429, headers={"Retry-After": "7"})
    hub.fault(
        "data.bin",
        status=429,
        headers={"Retry-After": email.utils.formatdate(time.time() + 30, usegmt=True)},
    )
    heard = Heard()
    assert download(place, tmp_path / "data.bin", sleep=waits.append, report=heard).sha256 == SHA
    assert waits[0] == 7.0 and 20 < waits[1] <= 30
    assert "too many requests; next try in 7 s" in heard.lines[0]


def test_a_wait_that_is_too_long_is_told_and_not_waited_for(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    hub.fault("data.bin", status=429, headers={"Retry-After": "3600"})
    with pytest.raises(FetchFailed, match="asks to wait 60 min") as failure:
        download(place, tmp_path / "data.bin", sleep=waits.append)
    assert "again in 60 min" in (failure.value.hint or "") and waits == []


def test_retry_after_as_the_standard_writes_it() -> None:
    assert seconds_to_wait("120") == 120 and seconds_to_wait(" 0 ") == 0
    assert seconds_to_wait("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert seconds_to_wait("soon") is None and seconds_to_wait(None) is None


def test_an_error_that_passes_is_tried_again(
    place: Site, hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    hub.fault("data.bin", status=500)
    assert download(place, tmp_path / "data.bin", sleep=waits.append).sha256 == SHA and waits == [
        1.0
    ]


def test_a_server_that_never_answered_is_told_at_once(tmp_path: Path, waits: list[float]) -> None:
    with pytest.raises(FetchFailed, match=r"127.0.0.1:9 cannot be reached \(Connection refused\)"):
        download(Site("http://127.0.0.1:9/data.bin"), tmp_path / "data.bin", sleep=waits.append)
    assert waits == []


def test_a_server_that_is_gone_after_it_has_answered_is_tried_again(
    tmp_path: Path, waits: list[float]
) -> None:
    with StandInHub() as hub:
        place = Site(hub.serve("files/data.bin", DATA))
        download(place, tmp_path / "first.bin")
    with pytest.raises(FetchFailed, match=rf"cannot be reached .*, {TRIES} times"):
        download(place, tmp_path / "data.bin", sleep=waits.append)
    assert waits == [1.0, 2.0, 4.0]


def test_without_any_server_that_is_one_line_at_once(
    hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    with pytest.raises(
        FetchFailed,
        match=r"^no network: neither 127.0.0.1 nor localhost can be reached \(Connection refused\)$",
    ):
        check_network(["http://127.0.0.1:9/a", "http://localhost:9/b", "http://localhost:9/c"])
    with pytest.raises(FetchFailed, match=r"^no network: 127.0.0.1 cannot be reached"):
        check_network(["http://127.0.0.1:9/a"])
    assert time.monotonic() - began < 2
    check_network(["http://127.0.0.1:9/a", hub.url])
    check_network([])
    assert hub.requests == [], "nobody is asked for anything"
    monkeypatch.setenv("http_proxy", hub.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name)
    check_network(["http://nowhere.invalid/a"])  # what goes through a proxy is where the proxy is


def test_a_server_that_neither_answers_nor_refuses_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bench.data.fetching import http as network

    monkeypatch.setattr(network.socket, "create_connection", lambda *_, **__: time.sleep(5))
    began = time.monotonic()
    with pytest.raises(FetchFailed, match="no answer in 0 s"):
        check_network(["http://127.0.0.1:9/a"], seconds=0.2)
    assert time.monotonic() - began < 2


def test_room_is_asked_for_before_a_byte_is_written(place: Site, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match=r"needs 1 MB more, and .* has 0 MB free") as failure:
        download(place, tmp_path / "data.bin", free=lambda _: 1000)
    assert "--data DIR" in (failure.value.hint or "") and left(tmp_path) == set()


def test_a_disk_that_fills_up_keeps_what_arrived(
    place: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("bench.data.fetching.file.os.fsync", full)
        with pytest.raises(FetchFailed, match="no space left for data.bin"):
            download(place, tmp_path / "data.bin")
    assert not (tmp_path / "data.bin").exists()
    assert download(place, tmp_path / "data.bin", sha256=SHA).sha256 == SHA


def test_a_folder_that_cannot_be_written(place: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(FetchFailed, match="cannot be written"):
        download(place, tmp_path / "file" / "data.bin")


@pytest.mark.parametrize("tells_length", [True, False])
def test_more_than_may_be_is_refused(
    place: Site, hub: StandInHub, tmp_path: Path, tells_length: bool
) -> None:
    if not tells_length:
        hub.fault("data.bin", hide_length=True)
    with pytest.raises(FetchFailed, match=r"larger \(.* bytes\) than it may be \(1,000\)"):
        download(place, tmp_path / "data.bin", most_bytes=1000)
    assert left(tmp_path) == set()


def test_two_processes_fetch_one_file_once(place: Site, hub: StandInHub, tmp_path: Path) -> None:
    hub.fault("data.bin", slow=0.05, times=None)
    code = (
        "import sys; from pathlib import Path; from bench.data.fetching import Site, download;"
        "print(download(Site(sys.argv[1]), Path(sys.argv[2]), sha256=sys.argv[3]).fetched)"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, place.url, tmp_path / "data.bin", SHA],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in both)
    assert said == ["False", "True"] and len(hub.asked("data.bin")) == 1
    assert (tmp_path / "data.bin").read_bytes() == DATA and left(tmp_path) == {"data.bin"}


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_ENDPOINT", "BENCH_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    assert (
        site("hub", "o/n", "main", "a b.txt").url
        == "https://huggingface.co/datasets/o/n/resolve/main/a%20b.txt"
    )
    assert (
        site("github", "o/n", "c0ffee", "a/b").url
        == "https://raw.githubusercontent.com/o/n/c0ffee/a/b"
    )
    assert site("web", "http://host/x", "", "y.zip").url == "http://host/x/y.zip"
    monkeypatch.setenv("BENCH_MIRROR", "http://mirror/")
    monkeypatch.setenv("HF_ENDPOINT", "http://hub/")
    assert (
        site("github", "o/n", "c0ffee", "a/b").url
        == "http://mirror/raw.githubusercontent.com/o/n/c0ffee/a/b"
    )
    assert site("hub", "o/n", "main", "x").url == "http://hub/datasets/o/n/resolve/main/x"


def test_an_address_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="is no address"):
        download(Site("no address"), tmp_path / "x")


def test_offline_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, offline in (("1", True), ("true", True), ("0", False), ("", False)):
        monkeypatch.setenv("HF_HUB_OFFLINE", value)
        assert offline_now() is offline
