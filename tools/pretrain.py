"""Pretrain the built-in backbone, a small BERT with masked language modelling, on a text file.

    python tools/pretrain.py --corpus wiki_sentences.txt.xz --out backbone/ --steps 5500

The steps, in the order of the code below:

1. A lower-cased WordPiece vocabulary of 8,192 pieces is trained on the corpus (Wu et al. 2016, as
  BERT uses it).
2. Every line is tokenised once, cut to 128 pieces with [CLS] and [SEP]; the last 5,000 lines are
  held out.
3. Batches of ``--batch-size`` lines of similar length are made; of the inner tokens a fraction
  ``MASKED`` is chosen, and of those 80 % become [MASK], 10 % a random piece, 10 % stay (Devlin et
  al. 2019, section 3.1). The loss is the mean cross-entropy in nats over the chosen tokens, and
  only these pass through the vocabulary head.
4. From step ``--cls-from`` on, the state of [CLS] goes through the same head and has to predict
  every piece of its sentence (mean cross-entropy, weight ``--cls-weight``). BERT's [CLS] has
  next-sentence prediction to learn from; without any task ours is hardly a sentence vector, and
  methods that start from it start from nothing.
5. AdamW, linear warm-up, constant rate, then linear decay to 0 over the last ``--decay`` steps.
  With that shape a longer run continues a shorter one: ``--resume`` goes on from the last state,
  also with another ``--steps``.

Dropout is 0 while pretraining (the model sees each line once or twice: it underfits) and 0.1 in the
saved config, as the contrastive methods need it. One batch in ten is placed at a random position
offset, so that all 256 position embeddings are trained: prefix methods start counting at the prefix
length.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import math
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from bench.base.devices import choose_precision

VOCABULARY = 8192
MAX_TOKENS = 128
POSITIONS = 256
HELD_OUT = 5000
MASKED = 0.20
PAD, UNK, CLS, SEP, MASK = range(5)
SETTINGS = (
    "batch_size",
    "learning_rate",
    "decay",
    "cls_from",
    "cls_weight",
    "layers",
    "hidden",
    "seed",
    "precision",
)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def read_lines(path: Path) -> list[str]:
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def train_tokenizer(lines: list[str], folder: Path) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``: a lower-cased WordPiece vocabulary
    trained on the lines.
    """
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(
        lines,
        vocab_size=VOCABULARY,
        min_frequency=2,
        limit_alphabet=400,
        special_tokens=SPECIAL,
        show_progress=False,
    )
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    (folder / "vocab.txt").write_text(
        "".join(piece + "\n" for piece, _ in vocabulary), encoding="utf-8"
    )
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "BertTokenizer",
                "do_lower_case": True,
                "model_max_length": POSITIONS,
            },
            indent=1,
        )
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def tokenize(lines: list[str], folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return all lines as one array of ids, and the (n + 1,) offsets of the lines in it.

    They are kept in ``folder`` between runs.
    """
    cache = folder / "tokens.npz"
    if cache.exists():
        stored = np.load(cache)
        return stored["ids"], stored["offsets"]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    pieces: list[np.ndarray] = []
    for start in range(0, len(lines), 10000):
        encoded = tokenizer.encode_batch_fast(lines[start : start + 10000])
        pieces.extend(np.array(e.ids, dtype=np.uint16) for e in encoded)
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in pieces])])
    ids = np.concatenate(pieces)
    np.savez(cache, ids=ids, offsets=offsets)
    return ids, offsets


def pad(ids: np.ndarray, offsets: np.ndarray, rows: np.ndarray) -> Tensor:
    """Return the lines ``rows`` as (n, longest) int64, padded on the right."""
    lengths = offsets[rows + 1] - offsets[rows]
    padded = np.full((len(rows), lengths.max()), PAD, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : lengths[i]] = ids[offsets[row] : offsets[row + 1]]
    return torch.from_numpy(padded)


def batches(offsets: np.ndarray, n: int, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """Yield batches of line numbers without end: each pass in a new order, lines of similar length
    together.
    """
    lengths = np.diff(offsets)[:n]
    epoch = 0
    while True:
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(n)
        chunk = batch_size * 64
        for start in range(0, n - batch_size + 1, chunk):
            rows = order[start : start + chunk]
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            groups = [
                rows[i : i + batch_size] for i in range(0, len(rows) - batch_size + 1, batch_size)
            ]
            for i in rng.permutation(len(groups)):
                yield groups[i]
        epoch += 1


def mask_tokens(ids_BT: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return the masked copy of a batch, and the chosen positions (bool, same shape)."""
    draw = torch.rand(ids_BT.shape, generator=generator)
    chosen = (draw < MASKED) & (ids_BT != PAD) & (ids_BT != CLS) & (ids_BT != SEP)
    kind = torch.rand(ids_BT.shape, generator=generator)
    random_ids = torch.randint(len(SPECIAL), VOCABULARY, ids_BT.shape, generator=generator)
    masked = torch.where(chosen & (kind < 0.8), MASK, ids_BT)
    return torch.where(chosen & (kind >= 0.9), random_ids, masked), chosen


def new_model(layers: int, hidden: int) -> BertForMaskedLM:
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
        max_position_embeddings=POSITIONS,
        pad_token_id=PAD,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    config._attn_implementation = (
        "eager"  # at 30 tokens a line its backward is 1.5 x as fast on a CPU as the fused kernel's
    )
    return BertForMaskedLM(config)


def states(
    model: BertForMaskedLM, masked_BT: Tensor, attention_BT: Tensor, first: int = 0
) -> Tensor:
    """Return the last hidden states, (B, T, H); positions count from ``first``."""
    positions = torch.arange(first, first + masked_BT.shape[1], device=masked_BT.device)[None]
    return model.bert(
        input_ids=masked_BT, attention_mask=attention_BT, position_ids=positions
    ).last_hidden_state


def cls_loss(model: BertForMaskedLM, cls_BH: Tensor, ids_BT: Tensor) -> Tensor:
    """Return [CLS]'s surprise by the pieces of its own sentence, without special tokens: mean, in
    nats.
    """
    surprise_BV = -model.cls(cls_BH).float().log_softmax(-1)
    inner_BT = (ids_BT != PAD) & (ids_BT != CLS) & (ids_BT != SEP)
    return surprise_BV.gather(1, ids_BT)[inner_BT].mean()


def learning_rate(step: int, *, peak: float, warmup: int, steps: int, decay: int) -> float:
    return peak * min(1.0, (step + 1) / warmup, max(0, steps - step) / max(1, decay))


@torch.no_grad()
def held_out_score(
    model: BertForMaskedLM, ids: np.ndarray, offsets: np.ndarray, device: str, precision: str
) -> dict[str, float]:
    """Score the masked positions of the held-out lines, under one fixed masking.

    Returns the loss (nats per chosen token) and the accuracy.
    """
    model.eval()
    generator = torch.Generator().manual_seed(0)
    n = len(offsets) - 1
    loss = right = count = bag = 0.0
    held_out = min(HELD_OUT, n // 10)
    for start in range(n - held_out, n, 250):
        batch = pad(ids, offsets, np.arange(start, min(start + 250, n)))
        masked, chosen = mask_tokens(batch, generator)
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            hidden = states(model, masked.to(device), (batch != PAD).to(device))
            logits = model.cls(hidden[chosen.to(device)])
            bag += float(cls_loss(model, hidden[:, 0], batch.to(device))) * len(batch)
        targets = batch[chosen].to(device)
        loss += float(torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum"))
        right += float((logits.argmax(-1) == targets).sum())
        count += len(targets)
    model.train()
    return {"loss": loss / count, "accuracy": right / count, "cls_loss": bag / held_out}


def save_weights(model: BertForMaskedLM, folder: Path) -> str:
    """Write fp16 ``model.safetensors`` and ``config.json`` with dropout 0.1, and return the
    weights' sha256.
    """
    from safetensors.torch import save_file

    tied = "cls.predictions.decoder."
    state = {
        k: v.half().cpu().contiguous()
        for k, v in model.state_dict().items()
        if not k.startswith(tied)
    }
    save_file(state, str(folder / "model.safetensors"), metadata={"format": "pt"})
    config = json.loads(model.config.to_json_string())
    config.update(
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        architectures=["BertForMaskedLM"],
        dtype="float32",
    )
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n")
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@dataclass(frozen=True)
class Facts:
    """The progress of a pretraining, and its text."""

    steps: int
    tokens: int
    seconds: float
    corpus_sha256: str
    sentences: int
    held_out: int  # sentences at the end that are not trained on


def read_arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python tools/pretrain.py", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--corpus", type=Path, required=True, help="one sentence a line, plain or .xz"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for tokenizer, weights, log and state"
    )
    parser.add_argument("--steps", type=int, default=5500)
    parser.add_argument(
        "--decay", type=int, default=1800, help="last steps, in which the rate falls to 0"
    )
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument(
        "--cls-from",
        type=int,
        default=3250,
        help="step from which [CLS] predicts its sentence's pieces",
    )
    parser.add_argument("--cls-weight", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=["auto", "bf16", "fp32"], default="auto")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args(argv)


def loss_of_batch(
    model: BertForMaskedLM,
    batch: Tensor,
    generator: torch.Generator,
    step: int,
    a: argparse.Namespace,
) -> tuple[Tensor, Tensor]:
    """Return the loss of a batch, and the part of it that is masked language modelling."""
    masked, chosen = mask_tokens(batch, generator)
    first = 0
    if torch.rand((), generator=generator).item() < 0.1:
        first = int(torch.randint(0, POSITIONS - batch.shape[1] + 1, (), generator=generator))
    with torch.autocast(a.device, torch.bfloat16, enabled=a.precision == "bf16"):
        hidden = states(model, masked.to(a.device), (batch != PAD).to(a.device), first)
        logits = model.cls(hidden[chosen.to(a.device)])
        mlm = torch.nn.functional.cross_entropy(logits.float(), batch[chosen].to(a.device))
        loss = mlm
        if step >= a.cls_from:
            loss = mlm + a.cls_weight * cls_loss(model, hidden[:, 0], batch.to(a.device))
    return loss, mlm


def write_card(
    model: BertForMaskedLM, a: argparse.Namespace, score: dict[str, float], facts: Facts
) -> None:
    """Save the weights, and ``card.json`` with the facts about them."""
    card = {
        "steps": facts.steps,
        "planned_steps": a.steps,
        "sentences_seen": facts.steps * a.batch_size,
        "tokens_seen": facts.tokens,
        "held_out": {
            "sentences": facts.held_out,
            "masked_fraction": MASKED,
            **score,
        },
        "corpus": {
            "file": a.corpus.name,
            "sha256": facts.corpus_sha256,
            "sentences": facts.sentences,
        },
        "settings": {k: getattr(a, k) for k in SETTINGS},
        "weights_sha256": save_weights(model, a.out),
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(facts.seconds),
        "hardware": f"{platform.processor() or platform.machine()}, "
        f"{torch.get_num_threads()} threads, device {a.device}",
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }
    (a.out / "card.json").write_text(json.dumps(card, indent=1) + "\n")


def main(argv: list[str] | None = None) -> None:
    a = read_arguments(argv)
    a.precision = choose_precision(a.precision, a.device)
    a.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(a.seed)

    lines = read_lines(a.corpus)
    corpus_sha = hashlib.sha256(("\n".join(lines) + "\n").encode()).hexdigest()
    if not (a.out / "tokenizer.json").exists():
        train_tokenizer(lines, a.out)
    ids, offsets = tokenize(lines, a.out)
    n_train = len(lines) - min(HELD_OUT, len(lines) // 10)
    del lines

    model = new_model(a.layers, a.hidden).to(a.device).train()
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=a.learning_rate,
        betas=(0.9, 0.98),
        eps=1e-6,
        weight_decay=0.01,
        fused=True,
    )
    generator = torch.Generator().manual_seed(a.seed)
    start = 0
    seconds = 0.0
    tokens = 0
    state_file = a.out / "state.pt"
    if a.resume and state_file.exists():
        state = torch.load(state_file, weights_only=True, map_location=a.device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        generator.set_state(state["generator"].cpu())
        start = state["step"]
        seconds = state["seconds"]
        tokens = state["tokens"]

    stream = batches(offsets, n_train, a.batch_size, a.seed)
    for _ in range(start):
        next(stream)
    began, running = time.perf_counter(), 0.0
    for step in range(start, a.steps):
        batch = pad(ids, offsets, next(stream))
        loss, mlm = loss_of_batch(model, batch, generator, step, a)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(
                step, peak=a.learning_rate, warmup=500, steps=a.steps, decay=a.decay
            )
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        running += mlm.item()
        tokens += int((batch != PAD).sum())
        if (step + 1) % 50 == 0:
            speed = 50 * a.batch_size / (time.perf_counter() - began)
            seconds += time.perf_counter() - began
            print(
                f"step {step + 1}/{a.steps} loss {running / 50:.3f} {speed:.0f} sentences/s",
                flush=True,
            )
            began, running = time.perf_counter(), 0.0
        if (step + 1) % a.save_every == 0 or step + 1 == a.steps:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "generator": generator.get_state(),
                "step": step + 1,
                "seconds": seconds,
                "tokens": tokens,
            }
            torch.save(state, state_file.with_suffix(".new"))
            state_file.with_suffix(".new").replace(state_file)
            began = time.perf_counter()
        if (step + 1) % 1000 == 0 or step + 1 == a.steps:
            score = held_out_score(model, ids, offsets, a.device, a.precision)
            if not math.isfinite(score["loss"]):
                raise SystemExit(
                    f"error: the held-out loss is {score['loss']} at step {step + 1}: "
                    "lower --learning-rate"
                )
            count = len(offsets) - 1
            held_out = count - n_train
            facts = Facts(step + 1, tokens, seconds, corpus_sha, count, held_out)
            write_card(model, a, score, facts)
            print(
                f"held out: loss {score['loss']:.4f} accuracy {score['accuracy']:.4f}", flush=True
            )
            began = time.perf_counter()


if __name__ == "__main__":
    main()
