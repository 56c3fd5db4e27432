"""A stand-in for the hub, and for any web server with files, on 127.0.0.1.

It speaks what huggingface_hub 2 asks for: repository information, ``resolve`` with ETag,
X-Repo-Commit and X-Linked-* headers (files kept as LFS are redirected to another host name, as the
hub does), byte ranges, gated and private repositories. No Xet.

    with StandInHub() as hub:
        revision = hub.add("model", "owner/name", {"config.json": b"{}"})
        hub.serve("some/file.txt", b"...")              # a plain file: hub.url + "/some/file.txt"
        hub.fault("model.safetensors", cut_after=1000)  # cut the next answer for such a path

huggingface_hub reads HF_ENDPOINT and its like when it is imported. The fixture ``hub`` therefore
sets the environment (which reaches child processes: ``hub.environment``) and the constants in every
module of this process that holds a copy.
"""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from hub_answers import Asked, Fault, Handler, Repo, is_lfs


class StandInHub:
    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.plain: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[Asked] = []
        self.tokens: set[str] = {"hf_good"}
        """Tokens that may see gated and private repositories."""
        self.blobs: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> StandInHub:
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Answers", (Handler,), {"hub": self})
        )
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def other_host(self) -> str:
        """Return the server under another name: LFS content is redirected there, and no token may
        arrive.
        """
        return f"http://localhost:{self._server.server_address[1]}"

    def add(
        self,
        kind: str,
        name: str,
        files: Mapping[str, bytes],
        *,
        gated: bool = False,
        private: bool = False,
        revision: str | None = None,
    ) -> str:
        """A repository, or a new revision of it that replaces all files.

        ``kind``: "model" or "dataset". Gives the revision.
        """
        assert kind in ("model", "dataset")
        repo = self.repos.setdefault((kind, name), Repo(kind, name))
        repo.gated, repo.private = gated, private
        content = {path: bytes(data) for path, data in files.items()}
        listing = json.dumps(
            [
                len(repo.revisions),
                *sorted((p, hashlib.sha256(d).hexdigest()) for p, d in content.items()),
            ]
        )
        revision = revision or hashlib.sha1(f"{kind} {name} {listing}".encode()).hexdigest()
        repo.revisions.pop(revision, None)
        repo.revisions[revision] = content
        return revision

    def serve(self, path: str, data: bytes) -> str:
        """Add a plain file; return its address."""
        self.plain[path.strip("/")] = bytes(data)
        return f"{self.url}/{path.strip('/')}"

    def fault(self, path: str, **what: Any) -> Fault:
        """Spoil answers for the paths that end in ``path``; see Fault.

        Faults of one path are used up in the order given.
        """
        fault = Fault(path, **what)
        self.faults.append(fault)
        return fault

    def asked(self, end: str = "", method: str | None = None) -> list[Asked]:
        """Return the requests for paths with this end, oldest first."""
        return [
            one
            for one in list(self.requests)
            if one.path.endswith(end) and method in (None, one.method)
        ]

    def environment(self, home: Path) -> dict[str, str]:
        """Return variables that send a child's client libraries here; merge them into
        os.environ.
        """
        return {
            "HF_ENDPOINT": self.url,
            "HF_HOME": str(home),
            "HF_HUB_CACHE": str(home / "hub"),
            "HF_HUB_OFFLINE": "0",
            "HF_DATASETS_CACHE": str(home / "datasets"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_TOKEN": "",
            "NO_PROXY": "127.0.0.1,localhost",
            "no_proxy": "127.0.0.1,localhost",
        }

    def _spoilt(self, method: str, path: str) -> Fault | None:
        redirect = "/resolve/" in path and is_lfs(path)  # has no body that could be spoilt
        with self._lock:
            for fault in self.faults:
                fits = (
                    path.endswith(fault.path)
                    and method in fault.methods
                    and (fault.status or not redirect)
                )
                if fits and fault.times != 0:
                    if fault.times is not None:
                        fault.times -= 1
                    return fault
        return None


def _constants(hub: StandInHub, home: Path) -> dict[str, Any]:
    return {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_URL_HOSTS": frozenset({"127.0.0.1"}),
        "HF_HUB_OFFLINE": False,
        "HF_HOME": str(home),
        "HF_HUB_CACHE": str(home / "hub"),
        "HUGGINGFACE_HUB_CACHE": str(home / "hub"),
        "HF_ASSETS_CACHE": str(home / "assets"),
        "HF_XET_CACHE": str(home / "xet"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "stored_tokens"),
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_DISABLE_TELEMETRY": True,
    }


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandInHub]:
    """Start a stand-in that the hub's libraries ask, in this process and in child processes."""
    import huggingface_hub.constants
    import huggingface_hub.hf_api

    home = tmp_path / "hf-home"
    with StandInHub() as running:
        for name, value in running.environment(home).items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("HF_TOKEN")
        values = {
            n: v
            for n, v in _constants(running, home).items()
            if hasattr(huggingface_hub.constants, n)
        }
        for name, module in list(sys.modules.items()):
            if module is not None and name.partition(".")[0] == "huggingface_hub":
                for constant, value in values.items():
                    if constant in vars(module):
                        monkeypatch.setattr(module, constant, value)
        monkeypatch.setattr(huggingface_hub.hf_api.api, "endpoint", running.url)
        if "datasets" in sys.modules:
            import datasets

            for name, value in {
                "HF_ENDPOINT": running.url,
                "HF_HUB_OFFLINE": False,
                "HF_DATASETS_CACHE": home / "datasets",
                "HF_CACHE_HOME": str(home),
            }.items():
                monkeypatch.setattr(datasets.config, name, value)
        send_requests_to(running.url, monkeypatch)
        yield running


def send_requests_to(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``requests``, which pooch uses, ask this server for files of all others.

    They are below the names of their hosts: SERVER/raw.githubusercontent.com/owner/name/...
    """
    for verb in ("get", "head"):
        ask = getattr(requests, verb)

        def redirected(url: str, ask: Any = ask, **options: Any) -> Any:
            scheme, _, rest = url.partition("://")
            here = scheme == "http" and rest.startswith(("127.0.0.1", "localhost"))
            return ask(url if here else f"{server}/{rest}", **options)

        monkeypatch.setattr(requests, verb, redirected)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Refuse connections to other machines; give the list of addresses that were tried."""
    tried: list[Any] = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def only_here(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and str(address[0]) not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            tried.append(address)
            raise AssertionError(f"a connection to {address} was tried")
        connect(self, address)

    def no_names(host: Any, *rest: Any, **more: Any) -> Any:
        if host not in (None, "", "127.0.0.1", "::1", "localhost", b"localhost", b"127.0.0.1"):
            tried.append(host)
            raise AssertionError(f"the name {host} was looked up")
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket.socket, "connect", only_here)
    monkeypatch.setattr(socket, "getaddrinfo", no_names)
    return tried
