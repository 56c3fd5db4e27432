"""How much memory a training takes, how fast everything is, and what it costs: groups 2 to 4 of gpu.py."""

from __future__ import annotations

import gc
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from gpu_models import (
    ROOT,
    Case,
    Outcome,
    Place,
    Rows,
    base_folder,
    built,
    config_folder,
    copied,
    corpus_of,
    feed_of,
    methods_of,
    random_backbone,
    sentences,
    shape,
    tokenizer,
)

WARM_UP, STEPS = 8, 30
LENGTH = 32  # tokens at most, as the papers have it
EVERY = 125  # steps between two evaluations in the papers
SCRIPT_PAIRS, DEV_PAIRS = (
    (5749, 1500, 1379, 4500, 500, 4927),
    1500,
)  # what SimCSE's script encodes; what is scored of it
OFF = 0.10  # how far a promise of --dry-run may be off
ENTRIES = {"simcse": "simcse", "promcse": "promcse"}


def case_of(name: str, setting: str) -> Case:
    return Case(methods_of(ENTRIES[name])[0], setting, "")


def ready_for(
    place: Place, name: str, setting: str, model: str, batch: int, precision: str, steps: int = 1000
) -> Any:
    """A method on a random model on the device, ready to train."""
    values = {
        "batch_size": batch,
        "max_steps": steps,
        "max_seq_length": LENGTH,
        "select_on": "last",
        "eval_steps": 10**6,
    }
    method = built(case_of(name, setting), place, random_backbone(model, place), **values)
    method.context = replace(method.context, device=place.device, precision=precision)
    return method


def free(place: Place) -> None:
    gc.collect()
    if place.on_gpu:
        torch.cuda.empty_cache()


class Training:
    """The real loop's steps, without its checkpoints: ``seconds()`` a step, after a warm-up."""

    def __init__(self, method: Any, corpus: Rows, *, ahead: int | None = None) -> None:
        from bench.training.trainer import Trainer

        self.method, self.corpus = method, corpus
        method.context.folder.mkdir(parents=True, exist_ok=True)
        self.trainer = Trainer(method, corpus, method.context)  # type: ignore[arg-type]
        self.feed = feed_of(method, corpus, ahead=ahead)

    def steps(self, count: int) -> None:
        from bench.method.passes import float32_products

        with float32_products(tf32=self.method.context.precision == "tf32"):
            for _ in range(count):
                self.trainer.step(self.feed)

    def seconds(self, place: Place, steps: int, warm_up: int = WARM_UP) -> tuple[float, float]:
        """(seconds, tokens without padding) of a step: medians over three stretches, each waited for at its ends."""
        self.steps(place.size(warm_up, 1))
        before, taken = self.trainer.progress.tokens, []
        each = max(1, steps // 3)
        for _ in range(3):
            place.wait()
            began = time.perf_counter()
            self.steps(each)
            place.wait()
            taken.append((time.perf_counter() - began) / each)
        return statistics.median(taken), (self.trainer.progress.tokens - before) / (3 * each)

    def close(self) -> None:
        self.feed.close()  # type: ignore[attr-defined]


def default_precision(place: Place) -> str:
    return "bf16" if "bf16" in place.precisions and place.on_gpu else "fp32"


# 2. memory


def memory(place: Place, argument: str) -> Outcome:
    """What --dry-run foretells of a training of this shape and batch, and the most that was in use in four steps of it."""
    model, _, size = argument.rpartition("-")
    batch = place.size(int(size), int(size) // 16)
    lines, ratios, detail = [], [], {}
    for name, precision in (
        ("simcse", default_precision(place)),
        *([("simcse", "fp32")] if place.on_gpu else []),
        ("promcse", default_precision(place)),
    ):
        key = f"{name} {precision}"
        promised = foretold(place, name, model, batch, precision)
        used = most_used(place, name, model, batch, precision)
        detail[key] = {"promised": promised, "used": used}
        if used is None:
            lines.append(f"{key}: does not fit, {promised / 2**30:.1f} GiB promised")
            total = torch.cuda.get_device_properties(0).total_memory
            ratios.append(1.0 if promised > 0.9 * total else 0.0)
        else:
            ratios.append(used / promised)
            lines.append(
                f"{key}: {used / 2**30:.2f} GiB, {promised / 2**30:.2f} promised, ratio {used / promised:.2f}"
            )
    good = all(abs(ratio - 1) <= OFF for ratio in ratios) if place.on_gpu else None
    return Outcome("; ".join(lines), good, "within 10 % of what --dry-run says", detail)


def foretold(place: Place, name: str, model: str, batch: int, precision: str) -> int:
    """Bytes, as ``bench run --dry-run`` has them."""
    from bench.backbones import Reference
    from bench.data.corpora import open_corpus_file
    from bench.run.estimates import estimate
    from bench.run.planned import PlannedRun
    from bench.run.plugins import Plugin
    from bench.run.recipes import merge_recipe

    case = case_of(name, "unsupervised")
    values = {"batch_size": str(batch), "max_seq_length": str(LENGTH), "max_steps": "1000"}
    recipe = merge_recipe(case.cls, None, "", values, trained=True)
    run = PlannedRun(
        plugin=Plugin(name, case.cls, "checkout", "", ""),
        variant="",
        setting=case.setting,
        backbone=Reference(name=model, revision="random", path=config_folder(model, place)),
        seed=1,
        recipe=recipe,
        corpus=open_corpus_file("builtin"),
        tasks=(),
        task_data=(),
        dev=None,
        text="tokenised",
        precision=precision,
        fingerprint="",
    )
    guess = estimate(run, {}, place.device)
    assert guess.memory_bytes is not None
    return guess.memory_bytes


def full_rows(count: int) -> Rows:
    """Sentences of exactly as many tokens as fit: what a promise has to hold for."""
    text = [
        i
        for ids in tokenizer()(sentences(2000), add_special_tokens=False)["input_ids"]
        for i in ids
    ]
    inner = LENGTH - 2
    cells = [
        np.array(
            (text * (count * inner // len(text) + 1))[row * inner : (row + 1) * inner],
            dtype=np.uint16,
        )
        for row in range(count)
    ]
    return Rows(("sentence",), [cells])


def most_used(place: Place, name: str, model: str, batch: int, precision: str) -> int | None:
    """Bytes; on a GPU what its allocator has handed out, beyond what this process held before. None: it does not fit."""
    from bench.base.devices import peak_memory_bytes, reset_peak_memory

    free(place)
    before = torch.cuda.memory_allocated() if place.on_gpu else 0
    reset_peak_memory(place.device)
    training = None
    try:
        training = Training(
            ready_for(place, name, "unsupervised", model, batch, precision), full_rows(4 * batch)
        )
        training.steps(4)
        place.wait()
        return peak_memory_bytes(place.device) - before
    except torch.OutOfMemoryError:
        return None
    finally:
        if training is not None:
            training.close()
        del training
        free(place)


# 3. speed


@cache
def peak_of(device: str, tiny: bool) -> float:
    """Operations a second of a large matrix product in bf16 (float32 on a CPU): the most that anything here can reach."""
    n = 256 if tiny else 8192
    kind = torch.bfloat16 if device.startswith("cuda") else torch.float32
    a, b = (torch.randn(n, n, device=device).to(kind) for _ in range(2))
    taken = []
    for _ in range(3):
        for _ in range(3):
            a @ b
        Place(device, tiny, Path()).wait()
        began = time.perf_counter()
        for _ in range(10):
            a @ b
        Place(device, tiny, Path()).wait()
        taken.append((time.perf_counter() - began) / 10)
    return 2 * n**3 / min(taken)


def peak(place: Place) -> Outcome:
    """The matrix speed that shares of the peak are of."""
    speed = peak_of(place.device, place.tiny)
    return Outcome(f"{speed / 1e12:.3g} TFLOPS", None, "", {"flops": speed})


def weights_of_layers(model: str, tiny: bool) -> int:
    values = shape(model, tiny)
    hidden, inner = values["hidden_size"], values["intermediate_size"]
    return values["num_hidden_layers"] * (4 * hidden * hidden + 2 * hidden * inner)


def training(place: Place, argument: str) -> Outcome:
    """Sentences a second of a method in a setting at a batch size, against the peer and against the peak."""
    name, setting, size = argument.split(" ")
    batch, precision, steps = (
        place.size(int(size), 8),
        default_precision(place),
        place.size(STEPS, 3),
    )
    method = ready_for(place, name, setting, "bert-base", batch, precision)
    corpus = corpus_of(case_of(name, setting), method, min(batch * (steps + WARM_UP), 20_000))
    ours = Training(method, corpus)
    seconds, tokens = ours.seconds(place, steps)
    ours.close()
    # forward 2, backward 4 operations a weight and token; of a frozen encoder backward 2, for its weights have no gradient
    operations = 6 if name == "simcse" else 4
    tokens *= 2 if len(corpus.columns) == 1 else 1  # a sentence alone goes through twice
    share = (
        operations
        * weights_of_layers("bert-base", place.tiny)
        * tokens
        / seconds
        / peak_of(place.device, place.tiny)
    )
    detail: dict[str, Any] = {
        "sentences_per_second": batch / seconds,
        "share_of_peak": share,
        "tokens": tokens,
        "precision": precision,
    }
    value = f"{batch / seconds:,.0f} sentences/s, {100 * share:.0f} % of the peak ({tokens:,.0f} tokens a step, {precision})"
    del ours, method
    free(place)
    if name != "simcse":
        return Outcome(value + "; no peer has this method", None, "", detail)
    best, default = at_its_best(place, setting, steps), at_its_default(place, setting, batch, steps)
    ratios = [batch / seconds / peer.rate for peer in (best, default)]
    value += f"; {best}, ours {ratios[0]:.2f} x; {default}, ours {ratios[1]:.2f} x"
    whole = int(size) == 512 and setting == "unsupervised"
    return Outcome(
        value,
        (ratios[0] >= 1.2 and ratios[1] >= 4 and (share >= 0.35 or not whole))
        if place.on_gpu
        else None,
        "1.2 x the peer at its best, 4 x its default" + (", 35 % of the peak" if whole else ""),
        detail | {"best": asdict(best), "default": asdict(default), "ratios": ratios},
    )


SWEEP = (64, 128, 256, 512, 1024)  # batches that a peer at its best may choose from


@dataclass(frozen=True)
class Peer:
    """What another library trained, and its sentences a second."""

    name: str
    rate: float

    def __str__(self) -> str:
        return f"{self.name}: {self.rate:,.0f}"


@cache
def at_its_best(place: Place, setting: str, steps: int) -> Peer:
    """The peer in bf16, with unpadded attention where that is installed, at its best batch of a sweep."""
    attention = "flash_attention_2" if place.on_gpu and _there("flash_attn") else None
    found = []
    for batch in SWEEP[:2] if place.tiny else SWEEP:
        rows = place.size(batch, batch // 16)
        try:
            name, seconds = peer_seconds(
                place, setting, rows, default_precision(place), steps + WARM_UP, attention
            )
        except torch.OutOfMemoryError:
            break
        how = f"{default_precision(place)}, {'unpadded' if attention else 'padded'}, batch {rows}"
        found.append(Peer(f"{name} at its best ({how})", rows / seconds))
        free(place)
    return max(found, key=lambda peer: peer.rate)


def at_its_default(place: Place, setting: str, batch: int, steps: int) -> Peer:
    """The peer as it comes: float32, padded; at our batch, for its own default of 8 would measure something else."""
    name, seconds = peer_seconds(place, setting, batch, "fp32", steps + WARM_UP)
    free(place)
    return Peer(f"{name} by default (fp32, padded, batch {batch})", batch / seconds)


def peers() -> list[str]:
    """The peers that can run here, the one that the goals are of first; a plain loop always can."""
    trainer = _there("accelerate")
    return [
        *(
            ["sentence-transformers"]
            if trainer and _there("sentence_transformers") and _there("datasets")
            else []
        ),
        *(["Trainer as SimCSE's script"] if trainer else []),
        "a plain loop as SimCSE's script",
    ]


def _there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def peer_seconds(
    place: Place, setting: str, batch: int, precision: str, steps: int, attention: str | None = None
) -> tuple[str, float]:
    """(its name, seconds a step) of the first peer that runs."""
    from training_sides import SIDES, Setup, plain_loop

    count = batch * steps
    rows = (
        list(zip(*(sentences(count, skip=i * count) for i in range(3)), strict=True))
        if setting == "supervised"
        else []
    )
    setup = Setup(
        base_folder(place),
        sentences(count),
        steps,
        batch,
        LENGTH,
        batch,
        place.device,
        precision,
        rows=rows,
        attention=attention,
    )
    problem = ""
    for name in peers():
        try:
            with mock.patch("torch.cuda.device_count", lambda: 1):  # else Trainer takes all cards
                clock = SIDES.get(name, plain_loop)(setup)
            return name + problem, clock.seconds_per_step(steps)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # a peer of another version, say: the next one
            problem = f" ({name} failed: {type(error).__name__})"
            print(f"peer {name}: {error!r}", file=sys.stderr)
    raise RuntimeError(f"no peer ran{problem}")


def evaluated(place: Place) -> Outcome:
    """125 steps of 64 and the evaluation after them: SimCSE's script, which encodes all of STS-B and SICK-R in the files' order in
    batches of 128, and ours, the distinct sentences of the 1,500 dev pairs sorted by length. On pairs of carried sentences."""
    from scipy.stats import spearmanr
    from training_sides import SENTEVAL_BATCH, Setup, _Script

    from bench.score.encoding import VectorStore

    batch, precision, steps = place.size(64, 8), default_precision(place), place.size(STEPS, 3)
    sizes = [place.size(size, max(2, size // 400)) for size in SCRIPT_PAIRS]
    gold = np.random.default_rng(0).random(sum(sizes)).tolist()
    pairs = list(
        zip(sentences(sum(sizes)), sentences(sum(sizes), skip=sum(sizes)), gold, strict=True)
    )
    ends = np.cumsum([0, *sizes])
    everything = [pairs[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    dev = pairs[: place.size(DEV_PAIRS, 8)]

    method = ready_for(place, "simcse", "unsupervised", "bert-base", batch, precision)
    ours = Training(
        method, corpus_of(case_of("simcse", "unsupervised"), method, batch * (steps + WARM_UP))
    )
    step, _ = ours.seconds(place, steps)
    ours.close()

    def scored(encode: Callable[[Any], np.ndarray]) -> float:
        began = time.perf_counter()
        vectors = VectorStore()
        vectors.add([s for a, b, _ in dev for s in (a, b)], encode)
        a, b = (vectors([pair[i] for pair in dev]).astype(np.float64) for i in (0, 1))
        spearmanr(
            (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1),
            [pair[2] for pair in dev],
        )
        return time.perf_counter() - began

    evaluation = min(scored(method.encode) for _ in range(2))
    del ours, method
    free(place)
    peer, their_step = peer_seconds(place, "unsupervised", batch, precision, steps + WARM_UP)
    script = _Script(
        Setup(
            base_folder(place),
            sentences(batch),
            1,
            batch,
            LENGTH,
            batch,
            place.device,
            precision,
            everything=everything,
        )
    )
    script.model.to(place.device)
    script.evaluate()
    their_evaluation = script.clock.evaluation
    assert their_evaluation is not None
    whole, theirs = EVERY * step + evaluation, EVERY * their_step + their_evaluation
    detail = {
        "ours": [EVERY * step, evaluation],
        "theirs": [EVERY * their_step, their_evaluation],
        "peer": peer,
        "ratio": theirs / whole,
    }
    value = f"{whole:.2f} s (evaluation {evaluation:.2f}); {peer}, batches of {SENTEVAL_BATCH}: {theirs:.2f} s ({their_evaluation:.2f}); {theirs / whole:.2f} x"
    return Outcome(
        value, theirs / whole >= 3 if place.on_gpu else None, "3 x SimCSE's script", detail
    )


def encoding(place: Place) -> Outcome:
    """Distinct sentences a second in float32, mean pooling, against sentence-transformers' ``encode`` at its best batch of a sweep and at
    its default of 32, or a plain loop that sorts by length as it does."""
    texts = sentences(place.size(10_000, 60))
    untrained = {cls.name: cls for cls in methods_of("untrained")}["last-avg"]
    folder = base_folder(place)
    from bench.backbones import load, resolve

    ready = built(Case(untrained, "none", ""), place, load(resolve(folder)))
    method = copied(ready, place, place.device)
    peer, encode = encoder_of_peer(place, folder)
    ours, vectors = encoding_seconds(method.encode, texts)
    theirs: dict[int, float] = {}
    for batch in (32, 128, 512):
        theirs[batch], others = encoding_seconds(partial(encode, batch), texts)
    off = float(np.abs(vectors - others).max() / np.abs(vectors).max())
    batch, best = min(theirs.items(), key=lambda pair: pair[1])
    value = (
        f"{len(texts) / ours:,.0f} sentences/s; {peer} at its best (batch {batch}): {len(texts) / best:,.0f}, ours "
        f"{best / ours:.2f} x; by default (batch 32): {len(texts) / theirs[32]:,.0f}, ours {theirs[32] / ours:.2f} x; "
        f"vectors {off:.0e} apart"
    )
    good = best / ours >= 1.2 and off <= 1e-2
    return Outcome(
        value,
        good if place.on_gpu else None,
        "1.2 x the peer at its best",
        {"ours": ours, "theirs": theirs, "peer": peer, "apart": off},
    )


def encoding_seconds(encode: Callable[[list[str]], Any], texts: list[str]) -> tuple[float, Any]:
    """(seconds of the faster of two, the vectors), after a warm-up."""
    encode(texts[:200])
    taken = []
    for _ in range(2):
        began = time.perf_counter()
        vectors = encode(texts)
        taken.append(time.perf_counter() - began)
    return min(taken), vectors


def encoder_of_peer(
    place: Place, folder: str
) -> tuple[str, Callable[[int, list[str]], np.ndarray]]:
    """(its name, from the size of a batch and texts to their vectors)."""
    if _there("sentence_transformers"):
        try:
            from sentence_transformers import SentenceTransformer

            model: Any = SentenceTransformer(folder, device=place.device, local_files_only=True)
            return "sentence-transformers", lambda size, texts: model.encode(
                texts, batch_size=size, show_progress_bar=False
            )
        except Exception as error:
            print(f"peer sentence-transformers: {error!r}", file=sys.stderr)
    from transformers import AutoModel

    encoder = AutoModel.from_pretrained(folder).to(place.device).eval()

    def plain(size: int, texts: list[str]) -> np.ndarray:
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        found = np.empty((len(texts), encoder.config.hidden_size), dtype=np.float32)
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            batch = tokenizer()(
                [texts[i] for i in rows], padding=True, truncation=True, return_tensors="pt"
            ).to(place.device)
            with torch.no_grad():
                states = encoder(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            found[rows] = ((states * mask).sum(1) / mask.sum(1)).cpu().numpy()
        return found

    return "a plain loop", plain


SEEDS = "1-5"


def paper_recipe(place: Place) -> Outcome:
    """Minutes to the dev score of SimCSE's own recipe on BERT-base, five seeds: the steps and dev scores of `bench run`, with the model,
    the corpus and STS-B as they are in the caches of this machine. A rehearsal takes the built-in ones and three steps."""
    from bench.records import RunsFolder

    runs = place.scratch / "paper-recipe"
    what = ["--backbone", "builtin", "--corpus", "builtin", "--suite", "check"]
    what += ["--set", "max_steps=3", "--set", "eval_steps=2"]
    if not place.tiny:
        what = ["--backbone", "bert-base-uncased", "--suite", "sts"]
    seeds = place.size(SEEDS, "1-2")
    command = [
        sys.executable,
        "-m",
        "bench",
        "run",
        "simcse",
        *what,
        "--seeds",
        seeds,
        "--runs",
        str(runs),
    ]
    command += ["--device", place.device, "--offline"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
        return Outcome(f"not run: {reason}", None, "", {"command": command})
    records, _ = RunsFolder(runs).records()
    minutes = [(one.cost.train_seconds + one.cost.dev_seconds) / 60 for one in records]
    scores = [one.training.dev_score for one in records]
    value = f"{statistics.mean(minutes):.2f} minutes a seed to {statistics.mean(scores):.2f} on dev, {len(records)} seeds"
    return Outcome(value, None, "", {"minutes": minutes, "dev_scores": scores})


ROW = ("sts", "transfer", "fewshot", "clustering", "cxc", "geometry")


def row(place: Place, suite: str) -> Outcome:
    """Seconds of one suite's scoring, on generated vectors of BERT-base's width and sets of the real sizes."""
    from gpu_row import scoring_of

    dim, scale = place.size(768, 16), 0.01 if place.tiny else 1.0
    seconds: dict[str, float] = {}
    notes: list[str] = []
    for name, work in scoring_of(suite, dim, scale, place.device, notes.append):
        began = time.perf_counter()
        work()
        place.wait()
        seconds[name] = time.perf_counter() - began
    total = sum(seconds.values())
    value = (
        f"{total:.1f} s: "
        + ", ".join(f"{name} {one:.1f}" for name, one in seconds.items())
        + "".join(f"; {note}" for note in dict.fromkeys(notes))
    )
    return Outcome(value, None, "", {"seconds": total, "each": seconds, "whole": not notes})


def switched(place: Place, what: str) -> Outcome:
    """One thing on and off, at batches of 64 and 512: what it saves of a step."""
    from bench.training.compiled import compile_encoder

    lines, detail = [], {}
    precision, steps = default_precision(place), place.size(STEPS, 3)
    for size in (64, 512):
        batch = place.size(size, 8)
        taken = {}
        for on in (False, True):
            method = ready_for(place, "simcse", "unsupervised", "bert-base", batch, precision)
            if what == "grouping":
                method.hidden = grouped_hidden(method) if on else method.states
            if (
                what == "compile" and on
            ):  # without a GPU the graph is traced and run as it is: there may be no C++ compiler
                stand_in = partial(torch.compile, backend="inductor" if place.on_gpu else "eager")
                with mock.patch("torch.compile", stand_in):
                    compile_encoder(method.encoder, print)
            training = Training(
                method,
                corpus_of(
                    case_of("simcse", "unsupervised"),
                    method,
                    min(20_000, batch * (steps + 3 * WARM_UP)),
                ),
                ahead=(None if on else 0) if what == "prefetch" else None,
            )
            taken[on], _ = training.seconds(
                place, steps, 3 * WARM_UP if what == "compile" else WARM_UP
            )
            training.close()
            del training, method
            free(place)
        gain = 100 * (taken[False] / taken[True] - 1)
        detail[str(size)] = {"off": taken[False], "on": taken[True], "gain_percent": gain}
        lines.append(
            f"at {size}: {gain:+.0f} % ({1000 * taken[False]:.1f} ms off, {1000 * taken[True]:.1f} on)"
        )
    return Outcome("; ".join(lines), None, "pays, or is removed", detail)


def grouped_hidden(method: Any) -> Callable[[Any], Any]:
    """As ``TorchMethod.hidden`` does on a CPU: rows of similar length in a pass of their own."""
    from bench.method.features import group_by_length, take, widened

    def hidden(features: Any) -> Any:
        mask = features["attention_mask"]
        groups = [rows.to(mask.device) for rows in group_by_length(mask.cpu())]
        if len(groups) < 2:
            return method.states(features)
        parts = [
            widened(
                method.states(take(features, rows, int(mask[rows].sum(1).max()))), mask.shape[1]
            )
            for rows in groups
        ]
        return torch.cat(parts)[torch.cat(groups).argsort()]

    return hidden


# 4. several GPUs


RANK_CASES = (("simcse", "unsupervised"), ("simcse", "supervised"), ("promcse", "supervised"))


def two_ranks(place: Place) -> Outcome:
    """Two processes, one for each card (NCCL; two CPU processes by gloo in a rehearsal), against one: losses and weights of a training."""
    with socket.socket() as free_port:
        free_port.bind(("127.0.0.1", 0))
        port = free_port.getsockname()[1]
    answer = place.scratch / "ranks.json"
    answer.unlink(missing_ok=True)
    code = "import sys; sys.path[:0] = sys.argv[1:3]; import gpu_speed; gpu_speed.one_rank(*sys.argv[3:])"
    command = [
        sys.executable,
        "-c",
        code,
        str(ROOT),
        str(ROOT / "benchmarks"),
        place.device,
        str(int(place.tiny)),
        str(place.scratch),
    ]
    tiny_ready = [
        ready_rank_case(place, *case) for case in RANK_CASES
    ]  # also makes the folders that the ranks read
    processes = []
    for rank in range(2):
        environment = os.environ | {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        processes.append(subprocess.Popen(command, env=environment))
    alone = [rank_training(place, method, None, place.device) for method in tiny_ready]
    codes = [process.wait(timeout=300) for process in processes]
    if any(codes):
        return Outcome(f"the two processes ended with {codes}: see log.txt", False, "1e-3", {})
    spread = json.loads(answer.read_text())
    worst = 0.0
    for one, two in zip(alone, spread, strict=True):
        worst = max(
            worst,
            max(abs(a - b) for a, b in zip(one["losses"], two["losses"], strict=True))
            / max(map(abs, one["losses"])),
        )
        worst = max(worst, abs(one["weights"] - two["weights"]) / one["weights"])
    steps = len(alone[0]["losses"])
    return Outcome(
        f"{len(alone)} trainings of {steps} steps, {worst:.1e} apart from one process",
        worst <= 1e-3,
        "1e-3",
        {"worst": worst},
    )


def ready_rank_case(place: Place, name: str, setting: str) -> Any:
    method = built(
        case_of(name, setting), place, batch_size=8, max_steps=20, dropout=0.0, prefix_dropout=0.0
    )
    for module in method.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return method


def rank_training(place: Place, method: Any, ranks: Any, device: str) -> dict[str, Any]:
    """Losses of the steps of a training, and the length of its weights afterwards."""
    from bench.training import trainer as module
    from bench.training.batches import batches, row_order

    corpus = corpus_of(
        Case(type(method), "supervised" if method.recipe.head_at_test else "unsupervised", ""),
        method,
        40,
    )
    one, losses = copied(method, place, device, ranks=ranks), []
    real = module.backward

    def recording(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        losses.append(float(found["loss"]))
        return found

    with mock.patch.object(module, "backward", recording):
        trainer = module.Trainer(one, corpus, one.context)  # type: ignore[arg-type]
        trainer.settled = True
        order = row_order(1, len(corpus), 8)
        feed = batches(one, corpus, order, 0, device=trainer.device, share=trainer.ranks.part)  # type: ignore[arg-type]
        for _ in range(place.size(20, 3)):
            trainer.step(feed)
        feed.close()
    return {
        "losses": losses,
        "weights": float(sum(p.detach().double().square().sum() for p in trainer.trained)) ** 0.5,
    }


def one_rank(device: str, tiny: str, scratch: str) -> None:
    """What each of the two processes does; rank 0 leaves the answer."""
    from bench.method.ranks import meet_ranks, rank_device

    place = Place(device, tiny == "1", Path(scratch))
    own = rank_device("cuda" if place.on_gpu else "cpu")
    ranks = meet_ranks(own)
    found = [rank_training(place, ready_rank_case(place, *case), ranks, own) for case in RANK_CASES]
    if ranks.lead:
        (place.scratch / "ranks.json").write_text(json.dumps(found))
    ranks.share(None)
    sys.stdout.flush()
    os._exit(0)  # threads of a backend may outlive the interpreter
