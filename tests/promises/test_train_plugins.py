"""A stranger's method: one file, or a class in a script or a notebook."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from made import sentences
from safetensors.numpy import load_file
from started import bench, environment, error_line, hashes, python, record, run_folders

DCL = '''
"""DCL: SimCSE without the positive pair in the denominator (arXiv 2110.06848, eq. 6)."""

import torch

from bench.method import Loss
from bench.methods.losses import cosine_matrix
from bench.methods.simcse import SimCSE


class DCL(SimCSE):
    name = "dcl"
    settings = ("unsupervised",)
    variants = {}
    summary = "SimCSE without the positive pair in the denominator"

    def loss(self, views, batch):
        first_BD, second_BD = views
        logits_BB = cosine_matrix(first_BD, second_BD) / self.recipe.temperature
        own_BB = torch.eye(len(logits_BB), dtype=torch.bool, device=logits_BB.device)
        others_B = logits_BB.masked_fill(own_BB, -torch.inf).logsumexp(1)
        return Loss((others_B - logits_BB.diagonal()).mean())
'''
LEAKS = '''
from bench.method import TorchMethod


class Leaks(TorchMethod):
    """Its mean counts padding: a sentence's vector depends on the others of its batch."""

    name = "leaks"
    settings = ("none",)
    summary = "mean over tokens and padding"

    def embed(self, features):
        return self.hidden(features).mean(1)
'''


@pytest.mark.promise(5)
def test_a_stranger_s_method_is_one_file(inputs: Path, tmp_path: Path) -> None:
    """It is run beside a method of the package, and compared with it."""
    (tmp_path / "dcl.py").write_text(DCL, encoding="utf-8")
    words = ["run", "dcl.py", "simcse", "--seeds", "1-2", "--backbone", inputs / "tiny"]
    words += ["--corpus", inputs / "corpus.txt", "--suite", inputs / "pairs.tsv"]
    words += ["--set", "batch_size=16", "--set", "select_on=last", "--set", "learning_rate=3e-3"]
    bench(*words, "--budget", "6steps", cwd=tmp_path)
    runs = [record(run) for run in run_folders(tmp_path / "runs")]
    scores = {(run["method"], run["seed"]): run["scores"][0]["value"] for run in runs}
    assert {run["status"] for run in runs} == {"finished"} and len(scores) == 4
    assert all(scores["dcl", seed] != scores["simcse", seed] for seed in (1, 2))
    table = bench("compare", "--baseline", "simcse", cwd=tmp_path).out
    mean = (scores["dcl", 1] + scores["dcl", 2]) / 2
    assert "dcl" in table and f"{mean:.2f}" in table


@pytest.mark.nightly
@pytest.mark.promise(5)
def test_check_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    (tmp_path / "leaks.py").write_text(LEAKS, encoding="utf-8")
    (tmp_path / "broken.py").write_text(LEAKS.replace("return", "retrun"), encoding="utf-8")
    done = bench("check", "leaks.py", cwd=tmp_path, code=1)
    said = " ".join((done.out + done.err).split())
    assert "leaks" in said and "Traceback" not in said
    assert "padding" in said and ("differs by" in said or "depends on" in said)
    line = error_line(bench("check", "broken.py", cwd=tmp_path, code=2))
    assert "broken.py" in line and "13" in line


@pytest.mark.nightly
@pytest.mark.promise(5)
def test_check_finds_nothing_wrong_with_methods_that_keep_the_contract(tmp_path: Path) -> None:
    (tmp_path / "dcl.py").write_text(DCL, encoding="utf-8")
    (tmp_path / "whole.py").write_text(ALL_NAMES, encoding="utf-8")
    bench("check", "dcl.py", "whole.py", cwd=tmp_path, env={"CALLED": str(tmp_path / "calls.txt")})


ALL_NAMES = '''
"""Every name of bench.method that a stranger may use."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

from bench.method import (
    Affine, Backbone, Batch, BenchError, Context, Features, Ids, Loss, Method, ModuleFile, Portable,
    Recipe, TorchMethod, TrainReport, Value, adamw, check_choice, check_mlm_head, check_placed,
    check_positive, join, load_backbone, pad, rng_for, seed_for,
)


def called(name: str) -> None:
    with open(os.environ["CALLED"], "a") as file:
        file.write(name + "\\n")


class Whole(TorchMethod):
    name = "whole"
    summary = "every name that a method may define"
    paper = "Somebody: A Paper, 2026"
    settings = ("unsupervised",)
    variants = {"cold": {"temperature": 0.01}}
    trains = "the encoder; the head only while training"
    trains_on = "text"
    training_only = ("head",)
    defaults = {
        "temperature": Value(0.05, "A Paper, table 1", "as SimCSE"),
        "side": Value("left", "ours"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone) -> None:
        check_positive(recipe, "temperature")
        check_choice(recipe, "side", ("left", "right"))
        if recipe.get("temperature") > 9:
            raise BenchError("temperature above 9", "--set temperature=0.05")

    @classmethod
    def needs(cls, setting, recipe: Recipe):
        called("needs")
        return super().needs(setting, recipe)

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        super().build(backbone, recipe)
        called("build")
        assert isinstance(self.context, Context) and recipe is self.recipe
        self.head = torch.nn.Linear(backbone.hidden_size, backbone.hidden_size)

    def fit(self, corpus, context):
        called(f"fit {len(corpus)}")
        return super().fit(corpus, context)

    def token_ids(self, sentences) -> list[Ids]:
        called("token_ids")
        return self.backbone.ids(sentences)

    def collate(self, columns, rows, epoch) -> tuple[Features, ...]:
        called("collate")
        ((_, texts),) = columns.items()
        assert all(isinstance(text, str) for text in texts)  # trains_on
        kept = []
        for row, text in zip(rows, texts):
            rng = rng_for(self.context.seed, "drop", epoch, int(row))
            words = text.split()
            words.pop(int(rng.integers(len(words))))
            kept.append(" ".join(words))
        longest = self.recipe.max_seq_length
        return tuple(self.assemble(self.token_ids(one), longest) for one in (texts, kept))

    def assemble(self, ids, max_length=None) -> Features:
        room = (max_length or self.backbone.max_tokens) - len(self.before) - len(self.after)
        return pad(ids, self.pad_id, before=self.before, after=self.after, longest=room)

    def prepare(self, batch: Batch) -> None:
        called("prepare")

    def views(self, batch: Batch):
        called("views")
        both = self.embed(join(batch.columns, self.pad_id))
        return tuple(self.head(both).chunk(2))

    def loss(self, views, batch: Batch) -> Loss:
        called("loss")
        first, second = (normalize(view.float(), dim=-1) for view in views)
        logits = first @ second.T / self.recipe.temperature
        contrast = cross_entropy(logits, torch.arange(len(first), device=first.device))
        return Loss(contrast, {"contrast": contrast})

    def states(self, features: Features) -> torch.Tensor:
        called("states")
        return super().states(features)

    def embed(self, features: Features) -> torch.Tensor:
        return self.hidden(features)[:, 0]

    def optimizer(self):
        called("optimizer")
        return adamw(self)

    def learning_rate(self, step: int, steps: int) -> float:
        called("learning_rate")
        return super().learning_rate(step, steps)

    def save(self, folder) -> None:
        called("save")
        super().save(folder)

    def load(self, folder) -> None:
        called("load")
        super().load(folder)

    def dev_score(self, score) -> float:
        called("dev_score")
        return score(self)

    def portable(self) -> Portable:
        called("portable")
        longest = self.backbone.max_tokens
        return Portable(self.encoder, self.backbone.tokenizer, longest, pooling="cls")


class Drawn(Method):
    """Without torch: the vectors of words are drawn."""

    name = "drawn"
    settings = ("none",)
    summary = "a sum of drawn vectors of words"
    deterministic = ("none",)

    def encode(self, sentences) -> np.ndarray:
        return np.stack([
            sum(np.random.default_rng(seed_for(7, word) % 2**32).normal(size=64)
                for word in text.split())
            for text in sentences
        ]).astype(np.float32)
'''
NAMES = ("whole", "drawn")
USED = {
    *("needs", "build", "fit 48", "token_ids", "collate", "prepare", "views", "states", "loss"),
    *("optimizer", "learning_rate", "dev_score", "save", "load"),
}
WITH_ALL_NAMES = """
import json, sys
import bench

values = {"suites": "pairs.tsv", "progress": False, "backbone": sys.argv[1]}
trains = {"corpus": json.loads(sys.argv[2]), "batch_size": 16, "budget": "2steps", "eval_steps": 1}
trains |= {"select_on": "captions dev"}
trained = bench.train(["whole.py"], runs="both", seeds=[1, 2], **values, **trains)
cold = bench.train("whole+cold", plugins="whole.py", runs="cold", seeds=1, **values, **trains)
(whole, *_) = [run for run in trained if "whole" in run.run_id]
bench.export_run(whole, "exported", plugins="whole.py")
for wrong in ({"temperature": -1.0}, {"temperature": 10.0}, {"side": "top"}):
    try:
        bench.train("whole", plugins="whole.py", runs="wrong", **wrong, **values, **trains)
    except bench.BenchError as error:
        print(json.dumps(str(error)))
"""


@pytest.mark.promise(5)
def test_the_names_that_a_stranger_s_file_may_use_do_what_they_are_for(
    inputs: Path, tmp_path: Path
) -> None:
    (tmp_path / "whole.py").write_text(ALL_NAMES, encoding="utf-8")
    (tmp_path / "pairs.tsv").write_bytes((inputs / "pairs.tsv").read_bytes())
    texts, calls = json.dumps(sentences(48, seed=51)), tmp_path / "calls.txt"
    env = {"CALLED": str(calls)}
    done = python(WITH_ALL_NAMES, inputs / "tiny", texts, cwd=tmp_path, env=env)
    assert {*calls.read_text().splitlines()} == USED | {"portable"}
    runs = [record(run) for run in run_folders(tmp_path / "both")]
    seeds = {name: [run["seed"] for run in runs if run["method"] == name] for name in NAMES}
    assert sorted(seeds["whole"]) == [1, 2] and len(seeds["drawn"]) == 1  # deterministic
    by_words = next(run for run in runs if run["method"] == "drawn")["scores"][0]["value"]
    assert by_words > 80  # a pair's rating is how many of its words are shared
    whole = next(run for run in runs if run["method"] == "whole")
    value = whole["recipe"]["temperature"]
    assert (value["value"], value["source"], value["note"]) == (
        0.05,
        "A Paper, table 1",
        "as SimCSE",
    )
    (cold,) = [record(run) for run in run_folders(tmp_path / "cold")]
    assert cold["variant"] == "cold" and cold["recipe"]["temperature"]["value"] == 0.01
    assert (tmp_path / "exported" / "modules.json").is_file()  # portable
    checkpoints = list((tmp_path / "both").glob("whole*/checkpoint/*.safetensors"))
    names = [name for path in checkpoints for name in load_file(path)]
    assert names and not [name for name in names if name.startswith("head")]  # training_only
    below, above, side = (line for line in done.out.splitlines() if line[:1] == '"')
    assert "temperature" in below and "above 9" in above
    assert "side" in side and "left" in side and "right" in side
    assert not list(tmp_path.glob("wrong/*/run.json"))


@pytest.mark.nightly
@pytest.mark.promise(5, 28)
def test_a_class_in_a_notebook_is_trained_and_an_edit_of_its_cell_is_another_run(
    copied: Any, inputs: Path
) -> None:
    import nbclient
    import nbformat

    folder = copied(inputs)
    edited = DCL.replace("diagonal()).mean()", "diagonal()).mean() / 2")
    train = (
        "import bench\n"
        "results = bench.train(DCL, 'tiny', 'corpus.txt', suites='pairs.tsv', batch_size=16,\n"
        "    budget='2steps', select_on='last', seeds=1, progress=False)\n"
        "print(results[0].run_id)"
    )
    book = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in (DCL, train, train, edited, train)]
    )
    client = nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}})
    client.execute(env=environment())
    printed = [
        out["text"].strip()
        for cell in book.cells
        for out in cell["outputs"]
        if out.get("name") == "stdout"
    ]
    first, same, other = printed
    assert first == same != other
    assert len(run_folders(folder / "runs")) == 2


VARIANT = """
from bench.methods.simcse import SimCSE
{imports}

class {cls}(SimCSE):
    name = "{name}"
    settings = ("unsupervised",)
    variants = {{}}
    summary = "one of several variants in a folder"

    def loss(self, views, batch):
        found = super().loss(views, batch)
        found.total = found.total * {factor}
        return found
"""
HELPER = "FACTOR = 2.0\n"


@pytest.mark.nightly
@pytest.mark.promise(5)
def test_an_edit_of_one_variant_in_a_folder_makes_no_other_variant_s_run_undone(
    inputs: Path, tmp_path: Path
) -> None:
    """The first two share a helper; a helper's edit makes the runs of those that import it undone,
    and of no other.
    """

    def variant(name: str, factor: str) -> None:
        imports = "from helper import FACTOR\n" if "FACTOR" in factor else ""
        text = VARIANT.format(cls=name.title(), name=name, factor=factor, imports=imports)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")

    def run() -> dict[str, dict[str, str]]:
        """Run all, and return each folder's files."""
        words = ["run", "one.py", "two.py", "three.py", "--backbone", inputs / "tiny"]
        words += ["--corpus", inputs / "corpus.txt", "--suite", inputs / "pairs.tsv"]
        words += ["--set", "batch_size=8", "--set", "select_on=last", "--budget", "1steps"]
        bench(*words, cwd=tmp_path)
        return {path.name: hashes(path) for path in run_folders(tmp_path / "runs")}

    def methods_of(names: set[str]) -> list[str]:
        return sorted(name.partition("-")[0] for name in names)

    (tmp_path / "helper.py").write_text(HELPER, encoding="utf-8")
    variant("one", "FACTOR")
    variant("two", "FACTOR")
    variant("three", "3.0")
    first = run()
    assert methods_of(set(first)) == ["one", "three", "two"]
    variant("one", "FACTOR * 5")
    second = run()
    assert methods_of(second.keys() - first.keys()) == ["one"]
    (tmp_path / "helper.py").write_text(HELPER.replace("2", "4"), encoding="utf-8")
    third = run()
    assert methods_of(third.keys() - second.keys()) == ["one", "two"]
    assert {name: third[name] for name in first} == first  # what was finished is as it was


@pytest.mark.promise(10)
def test_the_plan_file_of_a_run_makes_it_again_in_another_folder(
    copied: Any, inputs: Path, tmp_path: Path
) -> None:
    """With what the owner of the run would hand over: its method's file, and its texts under any
    name. Nothing in it names a folder.
    """
    here = copied(inputs)
    (here / "dcl.py").write_text(DCL, encoding="utf-8")
    words = ["run", "dcl.py", "simcse", "--backbone", here / "tiny", "--seeds", "3"]
    words += ["--corpus", here / "corpus.txt", "--suite", here / "pairs.tsv", "--budget", "1steps"]
    bench(*words, "--set", "batch_size=8", "--set", "select_on=last", cwd=here)
    runs = run_folders(here / "runs")
    assert len(runs) == 2
    there = tmp_path / "there"
    for name in ("dcl.py", "pairs.tsv", "tiny"):
        copy = shutil.copytree if (here / name).is_dir() else shutil.copy
        there.mkdir(exist_ok=True)
        copy(here / name, there / name)
    shutil.copy(here / "corpus.txt", there / "renamed.txt")
    for run in runs:
        text = (run / "plan.toml").read_text(encoding="utf-8")
        assert str(here) not in text and "/" not in text
        bench("run", "--plan", run / "plan.toml", "--runs", "again", cwd=there)
    again = run_folders(there / "again")
    assert [run.name for run in again] == [run.name for run in runs]
    for first, second in zip(runs, again, strict=True):
        assert record(first)["scores"] == record(second)["scores"]
