"""Text, random models of known shapes, and every method: for measurements of a card.

Nothing here needs an installed package, a network or a file beside this repository.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = {
    "sentences": ("sentence",),
    "pairs": ("sent0", "sent1"),
    "triplets": ("sent0", "sent1", "hard_neg"),
    "labelled": ("sent0", "sent1", "label"),
    "graded": ("sent0", "sent1", "score"),
}
SHAPES = {
    "bert-base": {
        "family": "bert",
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
    },
    "roberta-large": {
        "family": "roberta",
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "vocab_size": 50265,
        "max_position_embeddings": 514,
    },
}
TINY = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 256,
    "vocab_size": 8192,
}


@dataclass(frozen=True)
class Place:
    """The device of a measurement ("cuda" or "cpu"), its size and its folder.

    ``tiny`` makes everything small; files go to ``scratch``.
    """

    device: str
    tiny: bool
    scratch: Path

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    def size(self, whole: int, tiny: int) -> int:
        return tiny if self.tiny else whole

    @cached_property
    def precisions(self) -> tuple[str, ...]:
        """On a GPU all of them; on a CPU those that it computes in without dying of it."""
        if self.on_gpu:
            return ("fp32", "tf32", "bf16", "fp16")
        return ("fp32", "bf16") if self.bf16_works else ("fp32",)

    @cached_property
    def bf16_works(self) -> bool:
        """Say if a bf16 product of a training's size is survived; asked once, of a child process.

        Some processors announce bf16 and trap.
        """
        answer = self.scratch / "bf16.json"
        if not answer.is_file():
            code = (
                "import torch; "
                "a = torch.ones(128, 64, dtype=torch.bfloat16, requires_grad=True); "
                "(a @ a.T).sum().backward()"
            )
            died = (
                self.device == "cpu"
                and subprocess.run([sys.executable, "-c", code], capture_output=True).returncode
                != 0
            )
            answer.write_text(json.dumps(not died))
        return bool(json.loads(answer.read_text()))

    def wait(self) -> None:
        """Wait until the device has done all that it was asked for."""
        if self.on_gpu:
            import torch

            torch.cuda.synchronize()


class Rows:
    """Rows in memory, used as a tokenised corpus. ``cells``: ids or strings, column by column."""

    name, sha256 = "in memory", "0" * 64

    def __init__(self, columns: Sequence[str], cells: Sequence[Sequence[Any]]) -> None:
        self.columns, self._cells = tuple(columns), cells

    def __len__(self) -> int:
        return len(self._cells[0])

    def column(self, i: int) -> Any:
        return SimpleNamespace(rows=lambda rows: [self._cells[i][row] for row in rows])


@cache
def carried_text() -> tuple[str, ...]:
    """Return the distinct sentences of the corpus in the package."""
    from bench.data.corpora import open_corpus_file

    return tuple(dict.fromkeys(row[0] for row in open_corpus_file("builtin").rows()))


def sentences(count: int, skip: int = 0) -> list[str]:
    """Return ``count`` distinct sentences from the ``skip``-th on.

    At the end of the corpus they come again, each with a number behind it.
    """
    text = carried_text()
    rounds = ((i // len(text), text[i % len(text)]) for i in range(skip, skip + count))
    return [f"{sentence} {i}" if i else sentence for i, sentence in rounds]


def rows_for(method: Any, kind: str, count: int) -> Rows:
    """Return a corpus of a kind ("sentences", "triplets", ...) as the method reads it.

    Each column begins at another place of the text.
    """
    cells: list[Any] = []
    for i, name in enumerate(COLUMNS[kind]):
        if name == "label":
            cells.append([[row % 3] for row in range(count)])
            continue
        if name == "score":
            cells.append([[row % 6 / 5] for row in range(count)])
            continue
        texts = sentences(count, skip=i * count)
        cells.append(
            texts
            if method.trains_on == "text"
            else [np.array(ids, dtype=np.uint16) for ids in method.token_ids(texts)]
        )
    return Rows(COLUMNS[kind], cells)


def shape(name: str, tiny: bool) -> dict[str, Any]:
    """Return the sizes of a model, as transformers' config names them, and its family."""
    return {**SHAPES[name], **(TINY if tiny else {})}


@cache
def tokenizer() -> Any:
    """Return the built-in backbone's tokenizer."""
    from transformers import AutoTokenizer

    from bench.backbones import builtin_folder, silence_transformers

    silence_transformers()
    return AutoTokenizer.from_pretrained(builtin_folder())


def random_encoder(name: str, place: Place) -> Any:
    """Make an encoder of a shape with random weights, on the device."""
    import torch
    from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

    values = shape(name, place.tiny)
    family = values.pop("family")
    config: Any
    if family == "bert":
        config, kind = BertConfig(**values), BertModel
    else:
        config, kind = (
            RobertaConfig(**values, pad_token_id=tokenizer().pad_token_id, type_vocab_size=1),
            RobertaModel,
        )
    torch.manual_seed(0)
    with torch.device(place.device):
        return kind(config, add_pooling_layer=False).eval()


def random_backbone(name: str, place: Place) -> Any:
    """Make a random encoder as a method takes it, with the built-in tokenizer."""
    from bench.backbones.model import Backbone

    encoder = random_encoder(name, place)
    folder = config_folder(name, place)
    return Backbone(
        name=name,
        revision="random",
        family=str(SHAPES[name]["family"]),
        encoder=encoder,
        tokenizer=tokenizer(),
        path=folder,
        weights=folder,
    )


def config_folder(name: str, place: Place) -> Path:
    """Write a folder with the shape's config.json alone: a plan reads no more of a backbone."""
    folder = place.scratch / f"config-{name}"
    folder.mkdir(exist_ok=True)
    values = shape(name, place.tiny)
    config = {
        **values,
        "model_type": values["family"],
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def base_folder(place: Place) -> str:
    """Write a folder with random weights of BERT-base's shape, for libraries that read folders."""
    folder = place.scratch / "bert-base"
    if not (folder / "whole").exists():
        random_encoder("bert-base", place).to("cpu").save_pretrained(folder)
        tokenizer().save_pretrained(folder)
        (folder / "whole").touch()
    return str(folder)


def tiny_folder(place: Place) -> str:
    """Write a folder with the conformance suite's random BERT, 2 layers of 32.

    Its attention has no dropout: a GPU's fused attention draws its masks itself, and no other
    device can draw the same.
    """
    from bench.conformance.methods import tiny_backbone

    folder = place.scratch / "tiny"
    if not (folder / "whole").exists():
        tiny_backbone(folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(
            json.dumps({**config, "attention_probs_dropout_prob": 0.0})
        )
        (folder / "whole").touch()
    return str(folder)


def word_vectors(place: Place) -> str:
    """Write a file of random vectors for the words of the carried text."""
    file = place.scratch / "vectors.txt"
    if not file.is_file():
        words = sorted({word for sentence in carried_text()[:500] for word in sentence.split()})
        numbers = np.random.default_rng(0).normal(size=(len(words), 16)).round(4)
        file.write_text(
            "".join(
                f"{word} {' '.join(map(str, row))}\n"
                for word, row in zip(words, numbers, strict=True)
            )
        )
    return str(file)


def entry_points() -> dict[str, str]:
    """Return name -> module of every method of this checkout, from pyproject.toml.

    Nothing need be installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["entry-points"]["bench.methods"])


def methods_of(entry: str) -> list[type[Any]]:
    """Return the method classes of one entry point."""
    from bench.method import Method

    module = EntryPoint(entry, entry_points()[entry], "bench.methods").load()
    found = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Method) and "name" in vars(one)
    ]
    return [one for one in found if one.__module__ == module.__name__]


@dataclass(frozen=True)
class Case:
    """One method in one setting and variant."""

    cls: type[Any]
    setting: str
    variant: str

    def __str__(self) -> str:
        return f"{self.cls.name}{f'+{self.variant}' if self.variant else ''} {self.setting}"

    @property
    def trained(self) -> bool:
        """Say if anything is trained in this setting."""
        from bench.run.planned import learns

        return learns(self.cls, self.setting)

    @property
    def in_the_loop(self) -> bool:
        """Say if the common loop trains it."""
        return self.trained and self.cls.fitted != "pass"


def cases_of(entry: str) -> list[Case]:
    """Return every setting of an entry point's methods, with each variant that goes with it."""
    return [
        Case(cls, setting, variant)
        for cls in methods_of(entry)
        for setting in cls.settings
        for variant in ("", *cls.variants)
        if _fits(cls, setting, variant)
    ]


def _fits(cls: type[Any], setting: str, variant: str) -> bool:
    from bench.base.errors import BenchError
    from bench.run.planned import learns
    from bench.run.recipes import merge_recipe

    try:
        cls.needs(setting, merge_recipe(cls, None, variant, {}, trained=learns(cls, setting)))
    except BenchError:  # the two do not go together
        return False
    return True


MODELS = ("teacher", "teacher_1", "teacher_2", "guide", "generator")
"""Recipe keys that name another model."""
VALUES = {
    "flow": {"learning_rate": 2e-4},
    "guided-simcse": {"phi": 0.99999, "margin": -0.001},
    "pretrained": {"pooling": "cls"},
    "truncated": {"pooling": "cls", "size": 16},
    "whitening": {"components": 16},
    "sg-opt": {"head_width": 24},
    "infersent": {"lstm_size": 64, "classifier_size": 32},
}
"""Values that the tiny backbone needs: it has 32 numbers, and does not say how to pool.

The flow's first updates have no bias correction and are three times as large as others': at its own
rate rounding would be, too. InferSent's own 2,048 would take minutes of a CPU. To an untrained
guide all sentences are alike, so that at the recipe's thresholds every negative is left out and the
loss is exactly 0: these thresholds keep some.
"""


def built(case: Case, place: Place, backbone: Any = None, **values: Any) -> Any:
    """Return the method of a case on the CPU, with its paper's recipe and these values.

    Without ``backbone`` it is built on the tiny one.
    """
    import torch

    from bench.backbones import load, resolve
    from bench.method import Context, Recipe, Value, seed_for
    from bench.run.recipe_files import read_recipes
    from bench.run.recipes import choose_entry, merge_recipe

    cls, tiny = case.cls, tiny_folder(place)
    folder = Path(sys.modules[cls.__module__].__file__ or "").parent
    entry = choose_entry(
        read_recipes(folder, cls.name).recipes, case.setting, "bert-base-uncased", case.variant
    )
    recipe = merge_recipe(cls, entry, case.variant, {}, trained=case.trained)
    values = (
        {key: tiny for key in MODELS if key in cls.defaults} | VALUES.get(cls.name, {}) | values
    )
    values |= {"vectors": word_vectors(place)} if "vectors" in cls.defaults else {}
    recipe = Recipe(
        recipe.values_with_source()
        | {key: Value(value, "card.py") for key, value in values.items() if key in recipe}
    )
    method = cls()
    method.context = Context(seed=1, folder=place.scratch / "run", save_seconds=1e9)
    if backbone is None and not cls.own_backbone:
        backbone = load(resolve(tiny), dropout=recipe.get("dropout"))
    torch.manual_seed(seed_for(1, "init"))
    method.build(backbone, recipe)
    if isinstance(method, torch.nn.Module):
        if not case.trained:
            method.requires_grad_(False)
        method.eval()
    return method


def corpus_of(case: Case, method: Any, count: int) -> Rows:
    """Return ``count`` rows of the kind that the case trains on."""
    kinds = [kind for kind in case.cls.needs(case.setting, method.recipe) if kind in COLUMNS]
    return rows_for(method, kinds[-1], count)


def copied(method: Any, place: Place, device: str, precision: str = "fp32", **context: Any) -> Any:
    """Return a copy of a method, on a device and in a precision, with a folder of its own."""
    import tempfile

    from bench.method import Context

    backbone = getattr(method, "backbone", None)
    shared = [one for one in (getattr(backbone, "tokenizer", None),) if one is not None]
    twin = copy.deepcopy(method, {id(one): one for one in shared})
    folder = Path(tempfile.mkdtemp(dir=place.scratch))
    twin.context = Context(
        device=device, precision=precision, seed=1, folder=folder, save_seconds=1e9, **context
    )
    return twin.to(device) if hasattr(twin, "to") else twin


def feed_of(method: Any, corpus: Rows) -> Iterator[Any]:
    """Yield the batches of a training, as the loop makes them for the method's device."""
    import torch

    from bench.training.batches import batches, row_order

    recipe, device = method.recipe, torch.device(method.context.device)
    order = row_order(method.context.seed, len(corpus), recipe.batch_size, recipe.drop_last)
    yield from batches(method, corpus, order, 0, device=device)  # type: ignore[arg-type]
