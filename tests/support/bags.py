"""Stand-ins for finished encoders that need no weights: sums of random word vectors.

And a server that answers with them.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


@cache
def _word(word: str, dim: int) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=dim).astype(np.float32)


def bag(texts: Sequence[str], dim: int = 48) -> np.ndarray:
    """(n, dim) float32: the sum of a random vector for each word, the same in every process."""
    start = np.full(dim, 0.01, dtype=np.float32)
    return np.stack(
        [sum((_word(word, dim) for word in text.lower().split()), start) for text in texts]
    )


class Bag:
    """A stand-in for a model: an object with ``encode``."""

    def encode(self, texts: list[str]) -> np.ndarray:
        return bag(texts)


class Scripted(ThreadingHTTPServer):
    """Embeddings by OpenAI's interface.

    ``script``: the replies to the next requests instead of an answer, one each: a status, (status,
    headers), "half" an answer, "nothing" until the client gives up, or an object to answer with.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.dead = threading.Event()
        # answers instead of bags of words
        self.encode: Callable[[list[str]], np.ndarray] | None = None
        self.fails_after: int | None = None  # requests before each is answered with 500

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that gave up: some tests do that on purpose."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/embeddings"

    @property
    def asked(self) -> list[str]:
        return [text for one in self.requests for text in one["input"]]


class Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.append(self.headers.get("Authorization"))
        turn = self.server.script.pop(0) if self.server.script else None
        limit = self.server.fails_after
        if limit is not None and len(self.server.requests) >= limit:
            turn = 500
        if isinstance(turn, int | tuple):
            status, headers = (turn, {}) if isinstance(turn, int) else turn
            said = {"error": {"message": f"no: {self.headers.get('Authorization')}"}}
            self.answer(status, json.dumps(said).encode(), headers)
            return
        if turn == "nothing":
            self.server.dead.wait(20)
            return
        self.server.requests.append(body)
        encode = self.server.encode or (lambda texts: bag(texts, body.get("dimensions", 48)))
        vectors = enumerate(encode(body["input"]))
        rows = [{"index": i, "embedding": row.tolist()} for i, row in vectors]
        found = {"data": rows[::-1], "model": body["model"]} if turn in (None, "half") else turn
        answer = json.dumps(found).encode()
        self.answer(200, answer, {}, len(answer) // 2 if turn == "half" else len(answer))

    def answer(
        self, status: int, said: bytes, headers: dict[str, str], sent: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(said))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said[:sent])

    def log_message(self, *arguments: Any) -> None: ...


@contextmanager
def serving() -> Iterator[Scripted]:
    server = Scripted()
    options = {"poll_interval": 0.02}
    thread = threading.Thread(target=server.serve_forever, kwargs=options, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.dead.set()
        server.shutdown()
        server.server_close()
        thread.join()
