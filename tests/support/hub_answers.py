"""The answers of the stand-in hub (hub.py): one method per kind of question."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LFS = (".safetensors", ".bin", ".tar", ".zip", ".xz", ".gz", ".parquet", ".npy", ".onnx", ".model")


@dataclass
class Fault:
    """A fault in the answers for a path that ends in ``path``."""

    path: str
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """The connection is closed after this many bytes of the body."""
    wrong: bytes | None = None
    """Another body, under the same ETag."""
    hide_length: bool = False
    """No Content-Length: the end of the connection is the end of the file."""
    slow: float = 0.0
    """Seconds before each 64 KiB."""
    silent: float = 0.0
    """Seconds before anything is answered."""
    times: int | None = 1
    """How many answers are spoilt; None: all."""
    methods: tuple[str, ...] = ("GET",)


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """Names in lower case."""
    status: int


@dataclass
class Repo:
    kind: str
    name: str
    revisions: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Revision -> path -> content; the last one is "main"."""
    gated: bool = False
    private: bool = False

    @property
    def head(self) -> str:
        return list(self.revisions)[-1]

    def at(self, revision: str) -> str | None:
        if revision in ("main", ""):
            return self.head
        return revision if revision in self.revisions else None


def git_oid(data: bytes) -> str:
    return hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()


def is_lfs(path: str) -> bool:
    return path.endswith(LFS)


def _entry(path: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": git_oid(data)}
    if is_lfs(path):
        entry["lfs"] = {
            "oid": hashlib.sha256(data).hexdigest(),
            "size": len(data),
            "pointerSize": 130,
        }
    return entry


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Any  # the StandInHub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _any(self) -> None:
        parts = urlsplit(self.path)
        self.where, self.query = unquote(parts.path), parts.query
        fault = self.hub._spoilt(self.command, self.where)
        time.sleep(fault.silent if fault else 0)
        if fault and fault.status:
            self._answer(fault.status, b"spoilt for the test", fault.headers)
        else:
            try:
                self._route(fault or Fault(""))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    do_GET = do_HEAD = _any

    def _answer(
        self,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        fault: Fault | None = None,
    ) -> None:
        fault = fault or Fault("")
        self.hub.requests.append(
            Asked(
                self.command,
                self.where,
                self.query,
                {k.lower(): v for k, v in self.headers.items()},
                status,
            )
        )
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if not fault.hide_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        cut = body if fault.cut_after is None else body[: fault.cut_after]
        for start in range(0, len(cut), 1 << 16):
            if fault.slow:
                time.sleep(fault.slow)
            self.wfile.write(cut[start : start + (1 << 16)])
            self.wfile.flush()
        if fault.cut_after is not None or fault.hide_length:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def _json(
        self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self._answer(
            status,
            json.dumps(value).encode(),
            {"Content-Type": "application/json", **(headers or {})},
        )

    def _error(self, status: int, code: str, message: str) -> None:
        self._json({"error": message}, status, {"X-Error-Code": code, "X-Error-Message": message})

    def _file(self, data: bytes, headers: Mapping[str, str], fault: Fault) -> None:
        data = data if fault.wrong is None else fault.wrong
        asked = self.headers.get("Range")
        if not asked:
            return self._answer(200, data, {"Accept-Ranges": "bytes", **headers}, fault)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(int(last) + 1 if first and last else len(data), len(data))
        condition = self.headers.get("If-Range")
        if condition and condition != headers.get("ETag"):
            return self._answer(200, data, {"Accept-Ranges": "bytes", **headers}, fault)
        if start >= len(data):
            return self._answer(416, b"", {"Content-Range": f"bytes */{len(data)}", **headers})
        self._answer(
            206,
            data[start:stop],
            {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"},
            fault,
        )

    # routes

    def _route(self, fault: Fault) -> None:
        path = self.where.strip("/")
        if path in self.hub.plain:
            data = self.hub.plain[path]
            return self._file(data, {"ETag": f'"{hashlib.md5(data).hexdigest()}"'}, fault)
        if path.startswith("cdn/"):
            digest = path.split("/")[1]
            return self._file(self.hub.blobs[digest], {"ETag": f'"{digest}"'}, fault)
        if path.startswith("api/"):
            return self._api(path.split("/")[1:], fault)
        before, resolve, rest = path.partition("/resolve/")
        if not resolve:
            return self._answer(404, b"nothing here")
        kind = "dataset" if before.startswith("datasets/") else "model"
        self._resolve(kind, before.removeprefix("datasets/"), rest, fault)

    def _token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def _repo(self, kind: str, name: str, *, content: bool = False) -> Repo | None:
        """Return the repository, or None if the refusal was answered already."""
        repo, token = self.hub.repos.get((kind, name)), self._token()
        allowed = token in self.hub.tokens
        if repo is None or (repo.private and not allowed):
            self._error(
                404 if token else 401,
                "RepoNotFound",
                "Repository not found" if token else "Invalid username or password.",
            )
            return None
        if content and repo.gated and not allowed:
            message = (
                f"Access to {kind} {name} is restricted. "
                "You must have access to it and be authenticated to access it."
            )
            self._error(403 if token else 401, "GatedRepo", message)
            return None
        return repo

    def _resolve(self, kind: str, name: str, rest: str, fault: Fault) -> None:
        asked, _, path = rest.partition("/")
        if (repo := self._repo(kind, name, content=True)) is None:
            return
        revision = repo.at(asked)
        if revision is None:
            return self._error(404, "RevisionNotFound", f"Invalid rev id: {asked}")
        if path not in repo.revisions[revision]:
            return self._json(
                {"error": "Entry not found"},
                404,
                {
                    "X-Error-Code": "EntryNotFound",
                    "X-Error-Message": "Entry not found",
                    "X-Repo-Commit": revision,
                },
            )
        data = repo.revisions[revision][path]
        headers = {"X-Repo-Commit": revision, "Content-Type": "application/octet-stream"}
        if not is_lfs(path):
            return self._file(data, {**headers, "ETag": f'"{git_oid(data)}"'}, fault)
        digest = hashlib.sha256(data).hexdigest()
        self.hub.blobs[digest] = data
        at = f"{self.hub.other_host}/cdn/{digest}/{path}"
        linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data)), "Location": at}
        self._answer(302, b"", {**headers, **linked, "Accept-Ranges": "bytes"})

    def _api(self, parts: list[str], fault: Fault) -> None:
        if parts[0] not in ("models", "datasets") or len(parts) < 3:
            return self._answer(404, b"nothing here")
        kind = parts[0].removesuffix("s")
        name = "/".join(parts[1:3])
        rest = parts[3:]
        if (repo := self._repo(kind, name)) is None:
            return
        if rest and rest[0] != "revision":
            return self._answer(404, b"nothing here")
        revision = repo.at(rest[1] if len(rest) > 1 else "main")
        if revision is None:
            return self._error(404, "RevisionNotFound", f"Invalid rev id: {rest[1]}")
        files = repo.revisions[revision]
        self._json(_info(repo, revision, files, blobs="blobs" in parse_qs(self.query)))


def _info(repo: Repo, revision: str, files: Mapping[str, bytes], *, blobs: bool) -> dict[str, Any]:
    siblings: list[dict[str, Any]] = []
    for path, data in files.items():
        entry = _entry(path, data)
        more: dict[str, Any] = {"size": entry["size"], "blobId": entry["oid"]}
        if "lfs" in entry:
            more["lfs"] = {**entry["lfs"], "sha256": entry["lfs"]["oid"]}
        siblings.append({"rfilename": path} | (more if blobs else {}))
    return {
        "_id": "0" * 24,
        "id": repo.name,
        "modelId": repo.name,
        "author": repo.name.split("/")[0],
        "sha": revision,
        "private": repo.private,
        "gated": "manual" if repo.gated else False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": [],
        "siblings": siblings,
        "lastModified": "2026-01-01T00:00:00.000Z",
        "createdAt": "2026-01-01T00:00:00.000Z",
    }
