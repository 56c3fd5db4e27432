"""Exports: folders that sentence-transformers, peft and mteb load without bench."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made import rated_pairs, sentences, tiny_encoder
from scipy.stats import spearmanr
from started import bench, error_line, hashes, python, record

# of equal sentences every cosine is 1, and rounding would rank them
PAIRS = [one for one in rated_pairs(80) if one[0] != one[1]]
TEXTS = [*sentences(12, seed=7), "a man", "?", "the the the dog, 12 apples. " * 20]

MADE = """
import json, sys
from pathlib import Path
import numpy as np
import bench

inputs, folder = map(Path, sys.argv[1:3])
place = dict(
    backbone=inputs / "tiny", corpus=inputs / "corpus.txt", suites=folder / "pairs.tsv",
    runs=folder / "runs", seeds=1, progress=False,
)
options = place | dict(batch_size=8, max_steps=4, select_on="last", learning_rate=0.005)
results = {one.record.method: one for one in bench.train(["simcse", "promcse", "cls"], **options)}
results["whitening"] = bench.train("whitening", components=9, **place)[0]
results["lora"] = bench.train("simcse", adapter="lora", **options)[0]
own = {}
for name, result in results.items():
    own[name] = bench.load_run(result).encode(json.loads(sys.argv[3]))
    if name != "simcse":
        bench.export_run(result, folder / "exports" / name)
bench.export_run(results["lora"], folder / "exports" / "adapter", unmerged=True)
np.savez(folder / "own.npz", adapter=own["lora"], **own)

def lengths(texts):
    return np.array([[len(one), one.count("e"), one.count("a"), 1.0] for one in texts])

asked = dict(suites=folder / "pairs.tsv", runs=folder / "runs", name="lengths", progress=False)
results["lengths"] = bench.evaluate(lengths, **asked)
results["again"] = bench.evaluate(folder / "exports" / "whitening", **asked | {"name": "again"})
names = {name: result.run_id for name, result in results.items()}
(folder / "names.json").write_text(json.dumps(names))
"""
"""Trains a run of each kind, and keeps the vectors that bench itself gives for each.

What ``simcse`` is exported with is the command; see the fixture.
"""

HIDDEN = """
import sys

for name in [name for name in sys.modules if name.partition(".")[0] == "bench"]:
    del sys.modules[name]

class NotHere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "bench":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)

sys.meta_path.insert(0, NotHere())
import json
from pathlib import Path
import numpy as np
from sentence_transformers import SentenceTransformer

def load(folder):
    trust = any(folder.glob("*.py"))
    return SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, trust_remote_code=trust
    )
"""
"""The beginning of scripts that cannot import bench."""

LOADS = (
    HIDDEN
    + """
folder, to, texts = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
models = {one.name: load(one) for one in sorted(folder.iterdir())}
found = {name: model.encode(texts, batch_size=3) for name, model in models.items()}
if len(sys.argv) > 4:
    import torch
    from peft import PeftModel
    from transformers import AutoModel, AutoTokenizer
    model = PeftModel.from_pretrained(AutoModel.from_pretrained(sys.argv[4]), folder / "adapter")
    tokenizer = AutoTokenizer.from_pretrained(folder / "adapter")
    rows = tokenizer(texts[:14], padding=True, return_tensors="pt")
    with torch.no_grad():
        found["peft"] = model.eval()(**rows).last_hidden_state[:, 0].numpy()
np.savez(to, **found)
"""
)


def loaded(exports: Path, to: Path, texts: list[str], *base: Path) -> dict[str, Any]:
    """Return the vectors of exports by a process that has no bench; with a base peft's, too."""
    python(LOADS, exports, to, json.dumps(texts), *base, cwd=to.parent)
    with np.load(to) as stored:
        return dict(stored)


@pytest.fixture(scope="module")
def out(made_once: Callable[..., Path], inputs: Path) -> Path:
    """Return a folder with runs, their exports, and bench's own vectors of them."""

    def write(folder: Path) -> None:
        lines = ["sentence1\tsentence2\tscore", *(f"{a}\t{b}\t{score}" for a, b, score in PAIRS)]
        (folder / "pairs.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        python(MADE, inputs, folder, json.dumps(TEXTS), cwd=folder)
        name = json.loads((folder / "names.json").read_text())["simcse"]
        bench("export", name, "--runs", "runs", "--to", "exports/simcse", cwd=folder)

    return made_once("out", write)


@pytest.fixture(scope="module")
def theirs(out: Path, inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the vectors of each export: of TEXTS, then of the pairs that the runs were scored on."""
    firsts, seconds, _ = zip(*PAIRS, strict=True)
    to = tmp_path_factory.mktemp("theirs") / "vectors.npz"
    return loaded(out / "exports", to, [*TEXTS, *firsts, *seconds], inputs / "tiny")


KINDS = ("simcse", "promcse", "cls", "whitening", "lora", "adapter")


@pytest.mark.promise(27)
@pytest.mark.parametrize("name", KINDS)
def test_sentence_transformers_gives_the_vectors_of_the_run_without_bench(
    name: str, out: Path, theirs: dict[str, Any]
) -> None:
    with np.load(out / "own.npz") as stored:
        own = stored[name]
    found = theirs[name][: len(TEXTS)]
    assert own.shape == found.shape == (len(TEXTS), 9 if name == "whitening" else 32)
    assert np.ptp(own, axis=0).max() > 0.01
    assert np.abs(own - found).max() <= 1e-5 * max(1.0, np.abs(own).max())


@pytest.mark.promise(27)
def test_trained_exports_differ_from_the_encoder_that_they_began_with(theirs: Any) -> None:
    for name in ("simcse", "promcse", "lora", "adapter"):
        assert np.abs(theirs[name] - theirs["cls"]).max() > 0.01, name


@pytest.mark.promise(12, 27)
@pytest.mark.parametrize("name", KINDS)
def test_an_exports_cosines_give_the_score_of_the_run(
    name: str, out: Path, theirs: dict[str, Any]
) -> None:
    names = json.loads((out / "names.json").read_text())
    run = out / "runs" / names["lora" if name == "adapter" else name]
    (score,) = record(run)["scores"]
    first, second = np.split(theirs[name][len(TEXTS) :].astype(np.float64), 2)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = (first * second).sum(1) / lengths
    gold = [rating for _, _, rating in PAIRS]
    assert score["value"] == pytest.approx(100 * spearmanr(cosines, gold).statistic, abs=0.01)


@pytest.mark.promise(27)
def test_peft_loads_an_adapter_as_it_saves_them(theirs: dict[str, Any]) -> None:
    assert np.abs(theirs["peft"] - theirs["adapter"][:14]).max() <= 1e-5
    assert np.abs(theirs["peft"] - theirs["lora"][:14]).max() <= 1e-5


@pytest.mark.promise(27)
def test_an_export_has_a_card_and_neither_pickles_nor_imports_of_bench(out: Path) -> None:
    for folder in sorted((out / "exports").iterdir()):
        run = json.loads((out / "names.json").read_text()).get(
            folder.name.replace("adapter", "lora")
        )
        facts = record(out / "runs" / str(run))
        _, front, card = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
        for field in ("library_name", "pipeline_tag", "tags"):
            assert re.search(rf"^{field}: .*sentence", front, re.MULTILINE), (folder.name, field)
        assert f"{facts['scores'][0]['value']:.2f}" in card
        assert "SentenceTransformer(" in card and re.search(r"licen[cs]e", card, re.IGNORECASE)
        for name, value in facts["recipe"].items():
            row = re.search(rf"^\| {name} \|.*$", card.replace("\\", ""), re.MULTILINE)
            assert row and value["source"].split(";")[0] in row[0], (folder.name, name)
        files = [path for path in folder.rglob("*") if path.is_file()]
        assert {path.suffix for path in files} <= {".json", ".safetensors", ".py", ".txt", ".md"}
        code = "\n".join(path.read_text() for path in files if path.suffix == ".py")
        assert not re.search(r"^\s*(import|from) bench\b", code, re.MULTILINE)


@pytest.mark.promise(27, 31)
def test_an_export_names_no_folder_of_this_machine(out: Path, inputs: Path) -> None:
    """But an adapter names the folder of its base, which peft has to find."""
    for path in sorted((out / "exports").rglob("*")):
        if path.is_file() and (path.parent.name, path.suffix) != ("adapter", ".json"):
            assert str(inputs.parent).encode() not in path.read_bytes(), path


@pytest.mark.promise(15, 27)
def test_an_export_is_evaluated_to_the_score_of_its_run(out: Path) -> None:
    names = json.loads((out / "names.json").read_text())
    found, wanted = (record(out / "runs" / names[one])["scores"] for one in ("again", "whitening"))
    assert [score["task"] for score in found] == [score["task"] for score in wanted]
    assert found[0]["value"] == pytest.approx(wanted[0]["value"], abs=0.01)


@pytest.mark.promise(27, 29)
def test_a_folder_that_exists_is_not_overwritten(out: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    before = hashes(tmp_path)
    done = bench("export", "cls", "--runs", out / "runs", "--to", "mine", cwd=tmp_path, code=2)
    assert "mine" in error_line(done) and "exists" in error_line(done)
    assert hashes(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def refused(run: str, runs: Path, cwd: Path) -> str:
    """Return the line with which an export is refused, which leaves nothing behind."""
    before = sorted(cwd.iterdir())
    done = bench("export", run, "--runs", runs, "--to", "new", cwd=cwd, code=2)
    assert sorted(cwd.iterdir()) == before
    return error_line(done)


@pytest.mark.promise(27, 29)
def test_a_function_that_was_scored_cannot_travel(out: Path, tmp_path: Path) -> None:
    run = json.loads((out / "names.json").read_text())["lengths"]
    assert "lengths" in refused(run, out / "runs", tmp_path)


@pytest.mark.nightly
@pytest.mark.promise(27, 29)
def test_methods_that_change_what_a_layer_sees_refuse_in_a_line(
    inputs: Path, tmp_path: Path
) -> None:
    """They are listed in docs/methods.md."""
    tiny_encoder(tmp_path / "decoder", "llama")
    methods = ("token-prepending", "contrastive-prompting")
    words = ["run", *methods, "--backbone", "decoder", "--suite", inputs / "pairs.tsv"]
    bench(*words, "--runs", "runs", cwd=tmp_path)
    for method in methods:
        assert method in refused(method, tmp_path / "runs", tmp_path)


MTEB = (
    HIDDEN
    + """
import mteb
from datasets import Dataset, DatasetDict
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata

pairs = json.loads(sys.argv[2])
unknown = "date domains task_subtypes license annotations_creators dialect sample_creation"
facts = dict.fromkeys([*unknown.split(), "reference"])
facts |= {"name": "Small", "description": "", "bibtex_citation": "", "modalities": ["text"]}
facts |= {"dataset": {"path": "local", "revision": "1"}, "type": "STS", "category": "t2t"}
facts |= {"eval_splits": ["test"], "eval_langs": ["eng-Latn"]}

class Small(AbsTaskSTS):
    metadata = TaskMetadata(main_score="cosine_spearman", **facts)

    def load_data(self, **_):
        rows = dict(zip(("sentence1", "sentence2", "score"), map(list, zip(*pairs))))
        self.dataset = DatasetDict(test=Dataset.from_dict(rows))
        self.data_loaded = True

result = mteb.evaluate(load(Path(sys.argv[1])), [Small()], cache=None)
print("score", result.task_results[0].get_score())
"""
)


@pytest.mark.nightly
@pytest.mark.promise(13, 27)
@pytest.mark.parametrize("name", ["promcse", "whitening"])
def test_mteb_gives_an_export_the_score_of_its_run(name: str, out: Path, tmp_path: Path) -> None:
    said = python(MTEB, out / "exports" / name, json.dumps(PAIRS), cwd=tmp_path).out
    run = out / "runs" / json.loads((out / "names.json").read_text())[name]
    found = 100 * float(re.findall(r"^score (\S+)$", said, re.MULTILINE)[0])
    assert found == pytest.approx(record(run)["scores"][0]["value"], abs=0.01)


ALL = """
import json, sys
from pathlib import Path
import numpy as np
import bench

tiny, methods, texts = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
graded = dict.fromkeys(("angle", "angle-llama", "claif", "cosent", "pcc-tuning"), "pairs.tsv")
graded["claif"] = "rated.csv"
corpora = graded | dict.fromkeys(("sbert", "infersent"), "labelled.csv")
corpora |= dict.fromkeys(("whitening", "flow"), "corpus.txt")
usual = {"none": None, "unsupervised": "corpus.txt", "supervised": "triplets.csv"}
own = {
    "dclr": {"teacher": tiny}, "diffcse": {"generator": tiny}, "guided-simcse": {"guide": tiny},
    "rankcse": {"teacher_1": tiny, "teacher_2": None}, "whitening": {"components": 9},
    "glove-avg": {"vectors": "words.txt"}, "pretrained": {"pooling": "mean"},
    "infersent": {"vectors": "words.txt", "lstm_size": 5, "classifier_size": 3},
    "truncated": {"pooling": "mean", "size": 8}, "metaeol": {"tasks": "fact+paraphrase"},
}
said, vectors = {}, {}
for one in methods:
    name, values = one["name"], own.get(one["name"], {})
    setting = [kind for kind in usual if kind in one["settings"]][0]
    corpus = corpora.get(name, usual[setting])
    if setting != "none":
        values = {"max_steps": 2, "batch_size": 8, "select_on": "last"} | values
    backbone = {"glove-avg": None, "infersent": None, "metaeol": "builtin"}.get(name, tiny)
    options = dict(suites="pairs.tsv", seeds=1, runs="runs", setting=setting, progress=False)
    doing = "not trained"
    try:
        (result,) = bench.train(name, backbone, corpus, settings=values, **options)
        doing = "refused"
        bench.export_run(result, Path("exports") / name, progress=False)
        vectors[name] = bench.load_run(result).encode(texts)
    except bench.BenchError as error:
        said[name] = f"{doing}: {error}"
np.savez("own.npz", **vectors)
print(json.dumps(said))
"""


@pytest.mark.nightly
@pytest.mark.promise(5, 27)
def test_every_method_travels_or_refuses_in_a_line(inputs: Path, tmp_path: Path) -> None:
    """All but those that are listed; stored-prefix needs a checkpoint of PromCSE's authors."""
    for name in ("corpus.txt", "pairs.tsv", "triplets.csv"):
        (tmp_path / name).write_bytes((inputs / name).read_bytes())
    rows = [f"{a},{b},{number % 3}" for number, (a, b, _) in enumerate(PAIRS)]
    rows.insert(0, "sent0,sent1,label")
    (tmp_path / "labelled.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rows = ["sent0,sent1,score", *(f"{a},{b},{rating / 5}" for a, b, rating in PAIRS)]
    (tmp_path / "rated.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    words = sorted({word for a, b, _ in PAIRS for word in (*a.split(), *b.split())})
    numbers = np.random.default_rng(0).normal(size=(len(words), 4))
    lines = [" ".join([one, *map(str, row)]) for one, row in zip(words, numbers, strict=True)]
    (tmp_path / "words.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    methods = bench("methods", "--json", cwd=tmp_path).json
    methods = [one for one in methods if one["name"] != "stored-prefix"]
    assert len(methods) >= 48
    facts = json.dumps([{name: one[name] for name in ("name", "settings")} for one in methods])
    done = python(ALL, inputs / "tiny", facts, json.dumps(TEXTS), cwd=tmp_path, seconds=3600)
    said = json.loads(done.out.splitlines()[-1])
    assert not {name: line for name, line in said.items() if not line.startswith("refused")}
    refused = {"truncated", "token-prepending", "contrastive-prompting"}
    refused |= {"glove-avg", "infersent", "is-bert", "mirror-bert"}
    assert said.keys() == refused
    assert all("\n" not in line for line in said.values())
    found = loaded(tmp_path / "exports", tmp_path / "theirs.npz", TEXTS)
    with np.load(tmp_path / "own.npz") as stored:
        own = dict(stored)
    assert found.keys() == own.keys() == {one["name"] for one in methods} - said.keys()
    for name, vectors in own.items():
        largest = max(1.0, np.abs(vectors).max())
        assert np.abs(vectors - found[name]).max() <= 1e-5 * largest, name
