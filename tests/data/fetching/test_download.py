"""One file from a server that is slow, breaks off, sends wrong bytes, refuses, or has to wait for
room.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import argv
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
    with pytest.raises(DataDamaged, match="has the wrong checksum"):
        download(place, tmp_path / "data.bin", sha256="0" * 64)
    assert (tmp_path / "data.bin").read_bytes() == b"before"
    assert remaining(tmp_path) == {"data.bin"}


@pytest.mark.parametrize(
    ("fault", "message", "hint"),
    [
        ({"status": 404}, r"is not there, or not public \(status 404", "shows other sources"),
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


def test_temporary_errors_are_retried_after_the_requested_wait(
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


def test_no_server(hub: StandInHub, tmp_path: Path, waits: list[float]) -> None:
    with pytest.raises(FetchFailed, match=r"127.0.0.1:9 cannot be reached \(.*refused"):
        download(Site("http://127.0.0.1:9/data.bin"), tmp_path / "data.bin")


def test_whether_there_is_a_network(hub: StandInHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FetchFailed, match="^no network: 127.0.0.1:9 and localhost:9 cannot"):
        check_network(["http://127.0.0.1:9/a", "http://localhost:9/b", "http://localhost:9/c"])
    check_network(["http://127.0.0.1:9/a", hub.url])
    check_network([])


def in_a_new_process(url: str, to: Path, **environment: str) -> str:
    """Download in a new process, and return the error that it printed.

    The hub's client reads proxies and certificates when it is first used.
    """
    code = (
        "import sys; from pathlib import Path; from bench.data import fetching;"
        "fetching.WAITS = ();"
        "fetching.check_network([sys.argv[1]]);"
        "fetching.download(fetching.Site(sys.argv[1]), Path(sys.argv[2]))"
    )
    plain = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(
        [sys.executable, "-c", code, url, str(to)],
        env={**plain, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stderr


def test_downloads_use_the_proxy_that_the_environment_names(
    hub: StandInHub, tmp_path: Path
) -> None:
    hub.serve("data.bin", DATA)
    error = in_a_new_process("http://nowhere.invalid/data.bin", tmp_path / "a")
    assert "nowhere.invalid cannot be reached" in error
    assert (
        in_a_new_process("http://nowhere.invalid/data.bin", tmp_path / "b", http_proxy=hub.url)
        == ""
    )
    assert (tmp_path / "b").read_bytes() == DATA
    socks = in_a_new_process(
        "http://nowhere.invalid/", tmp_path / "c", all_proxy="socks5://localhost:9"
    )
    assert "cannot be reached" in socks and "Name or service" not in socks


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate by openssl")
def test_a_certificate_of_ones_own_is_named_by_ssl_cert_file(
    hub: StandInHub, tmp_path: Path
) -> None:
    made = argv("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost")
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "data.bin").write_bytes(DATA)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("localhost", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://localhost:{server.server_address[1]}/data.bin"
        assert "certificate verify failed" in in_a_new_process(url, tmp_path / "a").lower()
        bundle = str(tmp_path / "cert.pem")
        assert in_a_new_process(url, tmp_path / "b", SSL_CERT_FILE=bundle) == ""
        server.shutdown()
    assert (tmp_path / "b").read_bytes() == DATA


@pytest.mark.parametrize("broken", [ssl.SSLError(1, "bad record mac"), OSError(101, "unreachable")])
def test_a_network_that_breaks_in_mid_file_is_tried_again(
    web: Site,
    hub: StandInHub,
    tmp_path: Path,
    waits: list[float],
    monkeypatch: pytest.MonkeyPatch,
    broken: OSError,
) -> None:
    hub.fault("data.bin", slow=0.01, times=None)
    receive, blocks = socket.socket.recv, iter(range(1000))

    def breaking(self: socket.socket, *most: int) -> bytes:
        is_answer = threading.current_thread() is threading.main_thread()
        if is_answer and next(blocks) == 5:
            raise broken
        return receive(self, *most)

    monkeypatch.setattr(socket.socket, "recv", breaking)
    assert download(web, tmp_path / "data.bin", sha256=SHA) == SHA
    assert len(waits) == 1


def test_a_file_of_github_comes_from_the_second_address_where_the_first_refuses(
    hub: StandInHub, tmp_path: Path, waits: list[float]
) -> None:
    where = site("github", "o/n", "c0ffee", "a/data.bin")
    raw = hub.serve("raw.githubusercontent.com/o/n/c0ffee/a/data.bin", DATA)
    second = hub.serve("cdn.jsdelivr.net/gh/o/n@c0ffee/a/data.bin", DATA)
    assert (where.url, where.second_url) == (raw, second)
    fault = hub.fault("/n/c0ffee/a/data.bin", status=429, times=None)
    for status in (429, 403, 404):
        fault.status = status
        to = tmp_path / f"{status}"
        assert download(where, to, sha256=SHA) == SHA and to.read_bytes() == DATA
    assert waits == []
    fault.path, fault.status = "data.bin", 429
    with pytest.raises(FetchFailed, match="^127.0.0.1:[0-9]+ answered 429"):
        download(where, tmp_path / "data.bin")
    assert waits == [1.0, 2.0, 4.0]


def test_a_gated_data_set_names_the_login_command(hub: StandInHub, tmp_path: Path) -> None:
    hub.add("dataset", "owner/gated", {"a.txt": b"a"}, gated=True)
    with pytest.raises(FetchFailed, match="not there, or not public") as failure:
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
    web: Site, hub: StandInHub, tmp_path: Path
) -> None:
    for hide_length in (False, True):
        hub.fault("data.bin", hide_length=hide_length)
        with pytest.raises(FetchFailed, match=r"larger than allowed \(1,000 bytes\)"):
            download(web, tmp_path / "data.bin", most_bytes=1000)
    assert remaining(tmp_path) == set()


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
