"""A server with OpenAI's embeddings interface: ``POST {"model": ..., "input": [...]}`` -> ``{"data": [{"index": i, "embedding": [...]}]}``.

What it answered is kept in the cache, sentence by sentence, as soon as it has come: nothing is paid twice, also after a kill. The key
comes from the environment, goes into one header and nowhere else.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench.base.errors import BenchError, Interrupted, RunFailed
from bench.base.files import default_cache, lock
from bench.data.fetching import (
    LONGEST_WAIT,
    PASSING,
    Passing,
    Quiet,
    host,
    in_words,
    pause,
    seconds_to_wait,
)
from bench.method import Recipe, Value, prompted
from bench.run.models import GivenModel, ServerOptions, as_vectors, given_plugin, short_name
from bench.run.plugins import Plugin
from bench.score.encoding import VectorStore

TRIES = 6  # of one request that brings nothing
SECONDS = 120.0  # without a byte, after which a connection counts as dead
CHARACTERS_A_TOKEN = (
    4  # of English, in the tokenizers that such servers have: for the estimate alone
)
SAME = 0.999  # cosine of one sentence's two vectors, above which a server is the one that filled the cache
KEPT = "what has come is kept: the same command asks for the rest only"
OPENAI = "api.openai.com"


def server_plugin(address: str, options: ServerOptions) -> Plugin:
    """The method of one server and model. Raises BenchError for an address with a secret in it, and without a model's name."""
    parts = urllib.parse.urlsplit(address)
    if not parts.hostname:
        raise BenchError(f"{address[:60]} is no address", "http://HOST:PORT/v1/embeddings")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BenchError(
            f"the address at {parts.hostname} has more than a host and a path: a record would show it",
            "http://HOST:PORT/v1/embeddings; the key stands in the environment (--key-env NAME)",
        )
    if not options.model:
        raise BenchError(f"{address}: which model?", "--model NAME, as the server calls it")
    if options.key_env and not os.environ.get(options.key_env):
        raise BenchError(
            f"--key-env {options.key_env}: nothing of that name is in the environment",
            f"export {options.key_env}=...",
        )
    return given_plugin(
        ServerModel,
        own_backbone=short_name(options.model),
        batch=options.batch,
        key_env=options.key_env
        or ("OPENAI_API_KEY" if parts.hostname == OPENAI else "BENCH_API_KEY"),
        defaults={
            "address": Value(address, "given"),
            "model": Value(options.model, "given"),
            **({"dimensions": Value(options.dimensions, "given")} if options.dimensions else {}),
        },
    )


class ServerModel(GivenModel):
    """The vectors of a server. Nobody can say from outside which weights it has."""

    name = "server"
    kind = "server"
    summary = "a server with OpenAI's embeddings interface"
    batch: ClassVar[int]
    key_env: ClassVar[str]

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        """The sha256 of address, model and dimensions: also what names the cache."""
        said = [recipe["address"], recipe["model"], recipe.get("dimensions")]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    @classmethod
    def place(cls) -> Path:
        values = {key: value.value for key, value in cls.defaults.items()}
        return default_cache() / "server" / cls.own_revision(values)[:32]  # type: ignore[arg-type]

    @classmethod
    def expect(cls, texts: Sequence[str]) -> str | None:
        """Sentences, characters and requests that are still to be paid."""
        new = VectorStore(cls.place()).missing(texts)
        characters = sum(map(len, new))
        address = cls.defaults["address"].value
        if not new:
            return f"{address}: all {len(texts):,} sentences are in the cache; nothing is asked"
        cached = (
            f"; {len(texts) - len(new):,} more are in the cache" if len(new) < len(texts) else ""
        )
        return (
            f"{address}: {len(new):,} sentences, {characters:,} characters (some {characters // CHARACTERS_A_TOKEN:,} tokens, if "
            f"{CHARACTERS_A_TOKEN} characters are one), {-(-len(new) // cls.batch):,} requests{cached}"
        )

    def build(self, backbone: Any, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        self.client = Client(
            recipe["address"],
            recipe["model"],
            recipe.get("dimensions"),
            os.environ.get(self.key_env),
            self.key_env,
            self,
        )
        self.asked = False

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        texts = prompted(self.text_prompt, sentences)
        place = self.place()
        place.mkdir(parents=True, exist_ok=True)
        with lock(place / ".lock"):  # two processes would ask for the same
            store = VectorStore(place)
            new = store.missing(texts)
            if new and len(store) and not self.asked:
                self._check_same(store, texts)
            done = 0

            def ask(part: list[str]) -> np.ndarray:
                nonlocal done
                answered = self.client.vectors(part, int(store.first(1).shape[1]) or None)
                self.asked = True
                done += len(part)
                self.context.reporter.advance(len(texts) - len(new) + done, total=len(texts))
                return answered

            store.add(new, ask, chunk=self.batch)
            vectors = store(texts)
        self.context.reporter.advance(len(texts), total=len(texts))
        return vectors

    def _check_same(self, store: VectorStore, texts: Sequence[str]) -> None:
        """Raises RunFailed where the server has other weights than those that filled the cache: one sentence is asked again."""
        known = next((text for text in texts if text in store), None)
        if known is None:
            return
        (now,), (before,) = self.client.vectors([known], None), store([known])
        if now.shape != before.shape or now @ before < SAME * np.linalg.norm(now) * np.linalg.norm(
            before
        ):
            raise RunFailed(
                f"{self.recipe['address']} answers otherwise than when the cache was filled, for '{known[:60]}': another model?",
                f"remove {self.place()}, which is paid for, or give the model another name",
            )

    def about(self) -> dict[str, Any]:
        server = {key: self.recipe[key] for key in ("address", "model")}
        return {
            **super().about(),
            **server,
            "known": False,
            "identity": "address and name",
            "pooling": None,
            "dtype": None,
        }


@dataclass(frozen=True)
class Client:
    """Asks one server, again where that may help. What it raises names the host and never the key."""

    address: str
    model: str
    dimensions: int | None
    key: str | None = field(repr=False)
    key_env: str
    owner: ServerModel

    def vectors(self, texts: list[str], dimension: int | None) -> np.ndarray:
        """(n, d) float32. Raises RunFailed, Interrupted."""
        who = f"{self.model} at {host(self.address)}"
        failures = 0
        while True:
            try:
                return as_vectors(self._asked(texts), texts, who, dimension)
            except Passing as failure:
                failures += 1
                if failures == TRIES:
                    raise RunFailed(f"{who}: {failure}, {TRIES} times", KEPT) from None
                pause(failure, failures, who, _Report(self.owner), self._sleep)

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.owner.context.should_stop():
                raise Interrupted(f"stopped while waiting for {host(self.address)}; {KEPT}")
            time.sleep(min(left, 0.2))

    def _asked(self, texts: list[str]) -> list[Any]:
        body: dict[str, Any] = {"model": self.model, "input": texts, "encoding_format": "float"}
        body |= {"dimensions": self.dimensions} if self.dimensions else {}
        request = urllib.request.Request(
            self.address,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "User-Agent": "sentence-bench"},
        )
        if self.key:
            request.add_unredirected_header("Authorization", f"Bearer {self.key}")
        there = host(self.address)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                content = response.read()
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error, there) from None
        except http.client.IncompleteRead:
            raise Passing(f"{there} broke off in the middle of an answer") from None
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise Passing(
                f"{there} cannot be reached, or says nothing ({self._clean(in_words(reason))})"
            ) from None
        try:
            rows = json.loads(content)["data"]
            in_order = sorted(rows, key=lambda row: row["index"])
            if [row["index"] for row in in_order] != list(range(len(texts))):
                raise RunFailed(
                    f"{there} returned {len(rows)} vectors for {len(texts)} sentences", KEPT
                )
            return [row["embedding"] for row in in_order]
        except (ValueError, KeyError, TypeError, RecursionError):
            said = self._clean(content[:120].decode("utf-8", "replace"))
            raise RunFailed(
                f"{there} answered what are no embeddings: {said}",
                "is it the address of an embeddings interface?",
            ) from None

    def _refusal(self, error: urllib.error.HTTPError, there: str) -> Exception:
        try:
            said = self._clean(error.read(2000).decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException):
            said = ""
        code, told = error.code, f" ({said})" if said else ""
        if code in PASSING:
            wait = seconds_to_wait(error.headers.get("Retry-After"))
            if wait is not None and wait > LONGEST_WAIT:
                return RunFailed(
                    f"{there} asks to wait {wait:,.0f} s before the next request (status {code}){told}",
                    KEPT,
                )
            return Passing(f"{there} answered {code}{told}", wait)
        if code in (401, 403):
            how = (
                f"the key in ${self.key_env} is not taken"
                if self.key
                else f"no key is in ${self.key_env}"
            )
            return RunFailed(
                f"{there} refuses us with status {code}: {how}",
                f"set {self.key_env}, or --key-env NAME",
            )
        if code in (400, 413, 422):
            return RunFailed(
                f"{there} does not take the request: status {code}{told}",
                f"a smaller --batch (it was {self.owner.batch}); {KEPT}",
            )
        return RunFailed(
            f"{there} answered {code}{told}", "is it the address of an embeddings interface?"
        )

    def _clean(self, text: str) -> str:
        """What a server said, on one line and without the key."""
        line = " ".join(text.split())
        return (line.replace(self.key, "***") if self.key else line)[:160]


class _Report(Quiet):
    """Notes for whoever watches the run; the rest of a download's report is not needed."""

    def __init__(self, owner: ServerModel) -> None:
        self.owner = owner

    def say(self, line: str) -> None:
        self.owner.context.reporter.note(line)
