"""A server with OpenAI's embeddings interface, as a method. ::

    POST {"model": ..., "input": [...]}   ->   {"data": [{"index": i, "embedding": [...]}]}

Its answers go into the cache, sentence by sentence, as soon as they come: nothing is paid twice,
even after a kill. The key comes from the environment, goes into one header and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import requests

from bench.base.cache import default_cache
from bench.base.errors import BenchError, Interrupted, RunFailed, printable
from bench.base.locks import lock
from bench.external.external import ExternalModel, as_vectors, external_plugin
from bench.method import Recipe, Value, prompted
from bench.run.plugins import Plugin
from bench.score.encoding import VectorStore

TRIES = 6
"""Attempts at one request."""
SECONDS = 120.0
"""Time without a byte after which a connection counts as dead."""
LONGEST_WAIT = 120.0
"""Seconds: a longer Retry-After is an error."""
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""
SAME = 0.999
"""The smallest cosine between a sentence's stored and new vector if both come from the same
model.
"""
STORED = "the vectors received so far are stored: the same command requests only the rest"
ANSWER = (
    'the answer is {"data": [{"index": 0, "embedding": [0.1, ...]}, ...]}, '
    "with an entry of finite numbers for each text"
)
EXAMPLE = (
    "http://HOST:PORT/v1/embeddings --model NAME; "
    "the key is in $BENCH_API_KEY, or in the variable of --key-env NAME"
)


@dataclass(frozen=True)
class ServerOptions:
    """The options of requests to a server, as ``--model``, ``--batch`` ... set them."""

    # the model's name on the server
    model: str | None = None
    # texts in one request
    batch: int = 128
    # dimensions of the vectors; None: the model's own
    dimensions: int | None = None
    # the environment variable with the key; None: the usual one of the server
    key_env: str | None = None
    # sent in place of an empty text; None: empty texts are sent unchanged
    empty_text: str | None = None


def server_plugin(address: str, options: ServerOptions) -> Plugin:
    """Make the method of one server and model.

    Raises BenchError for an address with a secret in it, or without a model's name.
    """
    parts = urllib.parse.urlsplit(address)
    may_hold_a_secret = parts.username or parts.password or parts.query or parts.fragment
    if not parts.hostname or may_hold_a_secret:
        raise BenchError(
            f"the address at {parts.hostname} contains more than a host and a path; addresses are "
            "stored in records, so do not put keys or queries in them",
            EXAMPLE,
        )
    if not options.model:
        raise BenchError(f"{address}: --model is missing", EXAMPLE)
    if options.key_env and not os.environ.get(options.key_env):
        raise BenchError(
            f"--key-env {options.key_env}: the environment has no such variable",
            f"export {options.key_env}=...",
        )
    if options.empty_text == "":
        raise BenchError(
            "--empty-text '' is an empty text itself", "--empty-text ' ' sends a space"
        )
    values = {
        "address": address,
        "model": options.model,
        "dimensions": options.dimensions,
        "empty_text": options.empty_text,
    }
    key_env = "OPENAI_API_KEY" if parts.hostname == "api.openai.com" else "BENCH_API_KEY"
    return external_plugin(
        ServerModel,
        options.model,
        batch=options.batch,
        key_env=options.key_env or key_env,
        defaults={key: Value(value, "given") for key, value in values.items() if value},
    )


class ServerModel(ExternalModel):
    """The vectors of a server. Its weights cannot be identified from outside."""

    name = "server"
    kind = "server"
    summary = "a server with OpenAI's embeddings interface"
    batch: ClassVar[int]
    key_env: ClassVar[str]

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """Return the sha256 of address, model and dimensions, which also names the cache."""
        determines = [recipe["address"], recipe["model"], recipe.get("dimensions")]
        return hashlib.sha256(json.dumps(determines).encode()).hexdigest()

    @classmethod
    def cache_folder(cls) -> Path:
        """Return the folder of the stored answers."""
        values: Any = {key: value.value for key, value in cls.defaults.items()}
        return default_cache() / "server" / cls.own_revision(values)[:32]

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """Return one line: the sentences, characters and requests that are still to be paid."""
        replacement = cls.defaults.get("empty_text")
        texts = fill_empty_texts(texts, replacement.value if replacement else None)
        new = VectorStore(cls.cache_folder()).missing(texts)
        characters = sum(len(text) for text in new)
        count = math.ceil(len(new) / cls.batch)
        return (
            f"{cls.defaults['address'].value}: {len(new):,} sentences, "
            f"{characters:,} characters, {count:,} requests; "
            f"{len(texts) - len(new):,} sentences are in the cache"
        )

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        folder = self.cache_folder()
        texts = fill_empty_texts(
            prompted(self.text_prompt, sentences), self.recipe.get("empty_text")
        )
        folder.mkdir(parents=True, exist_ok=True)
        with lock(folder / ".lock"):  # else two processes would request the same sentences
            store = VectorStore(folder)
            new = store.missing(texts)
            if new and not self.dimension:
                self.dimension = self._check_same(store, texts)
            for start in range(0, len(new), self.batch):
                part = new[start : start + self.batch]
                store.add(part, self.request)
                self.dimension = int(store.first(1).shape[1])
                self.context.reporter.advance(
                    len(texts) - len(new) + start + len(part), total=len(texts)
                )
            return store(texts)

    def _check_same(self, store: VectorStore, texts: Sequence[str]) -> int | None:
        """Request one stored sentence again, and return the dimension of the stored vectors.

        Raises RunFailed if the server's weights are not those that filled the cache.
        """
        missing = set(store.missing(texts))
        known = next((text for text in texts if text not in missing), None)
        if known is None:
            return int(store.first(1).shape[1]) or None
        now = self.request([known])[0]
        before = store([known])[0]
        lengths = np.linalg.norm(now) * np.linalg.norm(before)
        if now.shape != before.shape or now @ before < SAME * lengths:
            raise RunFailed(
                f"{self.recipe['address']} now returns another vector for '{known[:60]}' "
                "than the one in the cache: has its model changed?",
                f"remove {self.cache_folder()}, and pay again, or give the model another name",
            )
        return len(before)

    def request(self, texts: list[str]) -> np.ndarray:
        """Request vectors, (n, d) float32, again if that may help.

        Raises RunFailed, which names the server and never the key, and Interrupted.
        """
        host = urllib.parse.urlsplit(self.recipe["address"]).netloc
        who = f"{self.recipe['model']} at {host}"
        problem = ""
        for attempt in range(TRIES):
            wait = 2.0**attempt
            try:
                response = self._post(texts)
            except requests.RequestException as error:
                problem = f"the connection failed ({self._clean(str(error))})"
            else:
                if response.status_code == 200:
                    rows = rows_of(response, len(texts))
                    if rows is not None:
                        return as_vectors(rows, texts, who, self.dimension, hint=ANSWER)
                problem = (
                    f"answered {response.status_code} without embeddings of {len(texts)} sentences "
                    f"({self._clean(response.text)})"
                )
                seconds = response.headers.get("Retry-After", "")
                if seconds.isdigit():
                    wait = float(seconds)
                if response.status_code not in PASSING or wait > LONGEST_WAIT:
                    after = f"; Retry-After: {seconds}" if seconds else ""
                    hint = why_refused(response.status_code, response.text, texts)
                    raise RunFailed(f"{who}: {problem}{after}", hint)
            if attempt < TRIES - 1:
                self.context.reporter.note(f"{who}: {problem}; trying again in {wait:.0f} s")
                self._sleep(wait)
        raise RunFailed(f"{who}: {problem}, {TRIES} times", STORED)

    def _sleep(self, seconds: float) -> None:
        """Wait. Raises Interrupted if the user stops."""
        until = time.monotonic() + seconds
        while True:
            remaining = until - time.monotonic()
            if remaining <= 0:
                return
            if self.context.should_stop():
                raise Interrupted(f"stopped while waiting for the server; {STORED}")
            time.sleep(min(remaining, 0.2))

    def _post(self, texts: list[str]) -> Any:
        """Send one request."""
        content = {"model": self.recipe["model"], "input": texts, "encoding_format": "float"}
        dimensions = self.recipe.get("dimensions")
        if dimensions:
            content["dimensions"] = dimensions
        return requests.post(
            self.recipe["address"],
            json=content,
            headers={"User-Agent": "sentence-bench"},
            auth=self._authorise,  # without it a .netrc would replace the key
            timeout=SECONDS,
            allow_redirects=False,  # the key is for this host only
        )

    def _authorise(self, request: Any) -> Any:
        """Put the key into a request's header."""
        key = os.environ.get(self.key_env)
        if key:
            request.headers["Authorization"] = f"Bearer {key}"
        return request

    def _clean(self, text: str) -> str:
        """Return a server's answer on one line, without the key."""
        line = " ".join(text[:2000].split())
        key = os.environ.get(self.key_env)
        if key:
            line = line.replace(key, "***")
        return line[:160]

    def about(self) -> dict[str, Any]:
        facts = super().about()
        facts["address"] = self.recipe["address"]
        facts["model"] = self.recipe["model"]
        facts["identity"] = "address and name"
        empty_text = self.recipe.get("empty_text")
        if empty_text:
            facts["empty_text"] = empty_text
        return facts


def fill_empty_texts(texts: Sequence[str], replacement: str | None) -> list[str]:
    """Replace texts that are empty or only white space; None changes nothing."""
    if replacement is None:
        return list(texts)
    return [text if text.strip() else replacement for text in texts]


def why_refused(status: int, answer: str, texts: Sequence[str]) -> str:
    """Return a hint for a request that a server refused, from its own words and the texts."""
    words = " ".join(answer[:2000].lower().split())
    if status in (401, 403, 404):
        return EXAMPLE
    if status == 200:
        return f"{ANSWER}; {EXAMPLE}"
    about_size = re.search(
        r"batch|too many|array|number of (inputs|texts|items)|at most \d+ (inputs|texts|items)",
        words,
    )
    if len(texts) > 1 and about_size:
        limits = [int(number) for number in re.findall(r"\b\d{1,6}\b", words)]
        allowed = [number for number in limits if 0 < number < len(texts)]
        if allowed:
            return f"--batch {max(allowed)} sends so many texts in one request"
        return f"fewer texts in one request: --batch {max(1, len(texts) // 4)}"
    if re.search(r"token|too long|length|context", words) or status == 413:
        longest = max(texts, key=len)
        return (
            f"the longest text of this request has {len(longest):,} characters, and begins "
            f"'{printable(longest[:40])}': "
            "let the server cut its texts (text-embeddings-inference: --auto-truncate)"
        )
    empty = [i for i, text in enumerate(texts, start=1) if not text.strip()]
    if empty:
        return (
            f"text {empty[0]} of the {len(texts)} is empty, which many servers refuse: "
            "--empty-text ' ' sends a space in its place, "
            "as mteb does, and the record says so"
        )
    if len(texts) > 1:
        return f"--batch 1 shows whether one text, or the number of texts, is the cause; {EXAMPLE}"
    return f"the text begins '{printable(texts[0][:40])}'; {EXAMPLE}"


def rows_of(response: Any, count: int) -> list[Any] | None:
    """Return the vectors of an answer in the order of the texts; None if some are missing."""
    try:
        by_index = {row["index"]: row["embedding"] for row in response.json()["data"]}
        return [by_index[i] for i in range(count)]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
