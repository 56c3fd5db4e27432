"""One file from a server that is slow, breaks off, sends wrong bytes, refuses, or says nothing."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import argv
from hub import StandInHub

from bench.base.errors import BenchError, DataDamaged, FetchFailed
from bench.data.fetching import check_network, download, site
from bench.data.hub import download_from_hub

DATA = np.random.default_rng(3).bytes(700_000)
SHA = hashlib.sha256(DATA).hexdigest()
Fetch = Callable[[Path], object]


@pytest.fixture
def url(hub: StandInHub) -> str:
    return hub.serve("files/data.bin", DATA)


@pytest.fixture(params=["web", "hub"])
def fetch(hub: StandInHub, url: str, request: pytest.FixtureRequest) -> Fetch:
    """Fetch the same file, from the web with its checksum or from the hub, which announces it."""
    if request.param == "web":
        return lambda to: download(url, to, sha256=SHA)
    hub.add("dataset", "owner/name", {"data.bin": DATA})
    return partial(download_from_hub, site("hub", "owner/name", "main", "data.bin"))


def refused(fetch: Fetch, folder: Path) -> BenchError:
    """Return the error of a fetch, which must be one line and leave nothing."""
    (folder / "data.bin").write_bytes(b"before")
    with pytest.raises((FetchFailed, DataDamaged)) as caught:
        fetch(folder / "data.bin")
    assert "\n" not in caught.value.message and caught.value.hint
    assert (folder / "data.bin").read_bytes() == b"before"
    assert remaining(folder) == {"data.bin"}
    return caught.value


def remaining(folder: Path) -> set[str]:
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}
    return names - {"hf-home"}


def test_a_whole_file_arrives_that_others_can_read(fetch: Fetch, tmp_path: Path) -> None:
    fetch(tmp_path / "data.bin")
    (tmp_path / "other").touch()
    assert (tmp_path / "data.bin").read_bytes() == DATA
    assert (tmp_path / "data.bin").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert remaining(tmp_path) == {"data.bin", "other"}


def test_a_file_with_the_checksum_stays(url: str, hub: StandInHub, tmp_path: Path) -> None:
    download(url, tmp_path / "data.bin", sha256=SHA)
    download(url, tmp_path / "data.bin", sha256=SHA)
    assert len(hub.requests) == 1
    (tmp_path / "data.bin").write_bytes(DATA[:-1])
    download(url, tmp_path / "data.bin", sha256=SHA)
    assert (tmp_path / "data.bin").read_bytes() == DATA


def test_other_bytes_are_refused(fetch: Fetch, hub: StandInHub, tmp_path: Path) -> None:
    hub.fault("data.bin", times=None, wrong=DATA[:-1] + b"?")
    error = refused(fetch, tmp_path)
    assert "wrong checksum" in error.message or "other bytes" in error.message


def test_a_file_that_is_cut_off_is_refused(url: str, hub: StandInHub, tmp_path: Path) -> None:
    for hide_length, sha256, words in (
        (False, SHA, "cannot be fetched"),
        (False, None, "cannot be fetched"),
        (True, SHA, "wrong checksum"),
        (True, None, "no length was announced"),
    ):
        hub.fault("data.bin", cut_after=300_000, hide_length=hide_length)
        error = refused(partial(download, url, sha256=sha256), tmp_path)
        assert words in error.message


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (404, "not there, or not public (status 404)", "shows other sources|hf auth login"),
        (429, "answered with status 429", "run the command again in 7 s"),
    ],
)
def test_a_refusal_names_the_status_and_what_to_do(
    fetch: Fetch, hub: StandInHub, tmp_path: Path, status: int, message: str, hint: str
) -> None:
    spoilt: dict[str, Any] = {"status": status, "headers": {"Retry-After": "7"}}
    hub.fault("data.bin", times=None, methods=("GET", "HEAD"), **spoilt)
    error = refused(fetch, tmp_path)
    assert message in error.message
    assert any(words in str(error.hint) for words in hint.split("|"))


def test_a_server_that_is_silent_or_stops_sending_counts_as_gone(
    url: str, hub: StandInHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.data.fetching.TIMEOUT", 0.2)
    for fault in ({"silent": 0.6}, {"slow": 0.6}):
        hub.fault("data.bin", **fault)
        error = refused(partial(download, url, sha256=SHA), tmp_path)
        assert error.message.endswith("cannot be fetched (timed out)")


def test_a_file_that_is_too_large_is_given_up_before_it_has_filled_the_disk(
    url: str, hub: StandInHub, tmp_path: Path
) -> None:
    for hide_length in (False, True):
        hub.fault("data.bin", hide_length=hide_length)
        error = refused(partial(download, url, most_bytes=1000), tmp_path)
        assert "larger than allowed (1,000 bytes)" in error.message


def test_offline_nothing_is_asked(fetch: Fetch, hub: StandInHub, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        error = refused(fetch, tmp_path)
    assert "HF_HUB_OFFLINE is set" in error.message and hub.requests == []


FETCH = (
    "import sys; from pathlib import Path; from bench.data.fetching import check_network, download;"
    "check_network([sys.argv[1]]);"
    "download(sys.argv[1], Path(sys.argv[2]), sha256=sys.argv[3] if len(sys.argv) > 3 else None)"
)


@pytest.mark.nightly
def test_two_processes_fetch_one_file_once(url: str, hub: StandInHub, tmp_path: Path) -> None:
    hub.fault("data.bin", slow=0.05, times=None)
    command = [sys.executable, "-c", FETCH, url, str(tmp_path / "data.bin"), SHA]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]
    assert len(hub.asked("data.bin")) == 1 and (tmp_path / "data.bin").read_bytes() == DATA


@pytest.mark.nightly
def test_what_a_killed_process_left_is_removed(url: str, hub: StandInHub, tmp_path: Path) -> None:
    slow = hub.fault("data.bin", slow=0.3, times=None)
    to = tmp_path / "data.bin"
    process = subprocess.Popen([sys.executable, "-c", FETCH, url, str(to), SHA])
    left = tmp_path / "data.bin.arriving"
    for _ in range(600):
        if left.is_dir() and any(file.stat().st_size for file in left.iterdir()):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not to.exists() and any(left.iterdir())
    slow.times = 0
    download(url, to, sha256=SHA)
    assert to.read_bytes() == DATA and remaining(tmp_path) == {"data.bin"}


def in_a_new_process(url: str, to: Path, **environment: str) -> str:
    """Download in a process with other proxies or certificates; return the error it printed."""
    plain = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    done = subprocess.run(
        [sys.executable, "-c", FETCH, url, str(to)],
        env={**plain, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stderr


@pytest.mark.nightly
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


def test_whether_there_is_a_network(hub: StandInHub) -> None:
    with pytest.raises(FetchFailed, match="^no network: 127.0.0.1:9 and localhost:9 cannot"):
        check_network(["http://127.0.0.1:9/a", "http://localhost:9/b", "http://localhost:9/c"])
    check_network(["http://127.0.0.1:9/a", hub.url])
    check_network([])


def test_a_gated_data_set_names_the_login_command(hub: StandInHub, tmp_path: Path) -> None:
    hub.add("dataset", "owner/gated", {"a.txt": b"a"}, gated=True)
    with pytest.raises(FetchFailed, match="not there, or not public") as failure:
        download_from_hub(site("hub", "owner/gated", "main", "a.txt"), tmp_path / "a.txt")
    assert "hf auth login" in (failure.value.hint or "")
