"""A server that refuses a request: the hint names what in the request is the likely cause, and an
empty text can be replaced.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from bench.base.errors import BenchError, RunFailed
from bench.external.server import (
    ServerModel,
    ServerOptions,
    fill_empty_texts,
    server_plugin,
    why_refused,
)
from bench.method import Context, Recipe

OPENAI = '{"error": {"message": "\'$.input\' is invalid.", "type": "invalid_request_error"}}'


@pytest.mark.parametrize(
    ("status", "answer", "texts", "says"),
    [
        (400, OPENAI, ["a", "", "b"], "text 2 of the 3 is empty"),
        (422, "input may not be blank", ["a", " \n"], "--empty-text ' ' sends a space"),
        (400, "batch size is invalid, should not be larger than 10", ["a"] * 24, "--batch 10 "),
        (422, "batch size 24 > maximum allowed batch size 16", ["a"] * 24, "--batch 16 "),
        (400, "batch size is invalid, not larger than 10", ["a", ""] * 12, "--batch 10 "),
        (413, "too many inputs", ["a"] * 24, "--batch 6"),
        (400, "'$.input' array is too long: at most 16", ["a"] * 24, "--batch 16 "),
        (
            413,
            "inputs must have less than 512 tokens. Given: 800",
            ["a", "b" * 90],
            "90 characters",
        ),
        (400, "maximum context length is 8192", ["b" * 90], "begins 'bbb"),
        (413, "Payload Too Large", ["b" * 90], "90 characters"),
        (401, "bad key", ["", "a"], "the key is in $BENCH_API_KEY"),
        (404, "no such model", ["", "a"], "--model NAME"),
        (400, "no", ["a", "b"], "--batch 1 shows whether one text"),
        (400, "no", ["odd"], "the text begins 'odd'"),
        (200, "{}", ["a", ""], '{"data": [{"index": 0'),
    ],
)
def test_the_hint_is_about_the_cause(status: int, answer: str, texts: list[str], says: str) -> None:
    hint = why_refused(status, answer, texts)
    assert says in hint and "\n" not in hint


def test_only_texts_without_a_letter_are_replaced() -> None:
    texts = ["a", "", " \t", "b "]
    assert fill_empty_texts(texts, None) == texts and fill_empty_texts(texts, "-") == [
        "a",
        "-",
        "-",
        "b ",
    ]


class NoEmptyText(BaseHTTPRequestHandler):
    seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        self.seen.extend(texts)
        rows = [{"index": i, "embedding": [len(text), 1.0]} for i, text in enumerate(texts)]
        refused = not all(texts)
        body = OPENAI.encode() if refused else json.dumps({"data": rows}).encode()
        self.send_response(400 if refused else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    NoEmptyText.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), NoEmptyText)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1/embeddings"
    server.shutdown()
    server.server_close()


def model(address: str, folder: Path, **options: Any) -> ServerModel:
    cls: Any = server_plugin(address, ServerOptions("m", **options)).cls
    method = cls()
    method.context = Context(seed=0, folder=folder)
    method.build(None, Recipe(cls.defaults))
    return method  # type: ignore[no-any-return]


def test_a_replaced_text_is_sent_scored_and_recorded(address: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="answered 400") as caught:
        model(address, tmp_path).encode(["abc", ""])
    assert "--empty-text" in (caught.value.hint or "")
    replaced = model(address, tmp_path, empty_text=" ")
    assert replaced.encode(["abc", ""]).tolist() == [[3.0, 1.0], [1.0, 1.0]]
    assert set(NoEmptyText.seen[-2:]) == {"abc", " "}
    assert replaced.about()["empty_text"] == " "
    assert "empty_text" not in model(address, tmp_path).about()
    with pytest.raises(BenchError, match="is an empty text itself"):
        model(address, tmp_path, empty_text="")
