"""The meaning of a command: its runs, their ids and fingerprints, and what is refused before
anything is started.
"""

from __future__ import annotations

import gzip
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.backbones import resolve
from bench.base.errors import BenchError, CorpusError, DataMissing, UnknownName
from bench.data.sets import DataFolder, Later
from bench.method import Method
from bench.method.config import RunConfig
from bench.method.plugins import Plugin, Registry
from bench.run.corpora import stsb_train
from bench.run.plan import plan_configs
from bench.run.planned import PlannedRun

NO_DATA = DataFolder(None)


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text("a man plays\nthe dog runs\n")
    return str(path)


@pytest.fixture
def triplets(tmp_path: Path) -> str:
    path = tmp_path / "nli.csv"
    path.write_text("sent0,sent1,hard_neg\na,b,c\nd,e,f\n")
    return str(path)


def planned(
    registry: Registry, method: str = "simcse", data: DataFolder = NO_DATA, **values: Any
) -> list[PlannedRun]:
    return plan_configs(
        [RunConfig(**{"methods": (method,), "suites": ("check",)} | values)], registry, data
    )


def test_a_run_is_named_by_method_backbone_seed_and_fingerprint(
    registry: Registry, corpus: str, tiny: str
) -> None:
    where = {"seeds": (1, 2), "backbones": ("builtin", tiny), "corpus": corpus}
    runs = planned(registry, **where)
    assert [(r.method, r.backbone.short, r.seed) for r in runs] == [
        ("simcse", b, s) for b in ("builtin", "tiny") for s in (1, 2)
    ]
    for run in runs:
        name = f"simcse-{run.backbone.short}-s{run.seed}-{run.fingerprint[:8]}"
        assert run.run_id == name and re.fullmatch("[0-9a-f]{64}", run.fingerprint)
    assert len({run.run_id for run in runs}) == 4
    assert [run.run_id for run in planned(registry, **where)] == [r.run_id for r in runs]
    assert runs[0].setting == "unsupervised"
    assert any(note.startswith(f"no recipe for {tiny}") for note in runs[2].notes)
    assert not any("no recipe" in note for note in runs[0].notes)


class Varied(Method):
    name, settings = "varied", ("unsupervised", "supervised")
    variants = {"hot": {"temperature": 2.0}, "same": {}}
    defaults = {"temperature": 1.0}


def with_plugin(cls: type[Method], sha256: str = "0" * 64) -> Registry:
    return Registry({cls.name: Plugin(cls.name, cls, "here", "", sha256)}, ())


def test_a_method_may_be_named_with_its_variant(registry: Registry, corpus: str) -> None:
    """Each method of a list has its own; it is the run that METHOD+VARIANT makes."""
    runs = plan_configs(
        [RunConfig(methods=("simcse+mlm", "simcse", "dcpcse"), suites=("check",), corpus=corpus)],
        registry,
        NO_DATA,
    )
    wanted = [("simcse", "mlm", True), ("simcse", "", False), ("dcpcse", "", False)]
    assert [(run.method, run.variant, run.recipe.mlm) for run in runs] == wanted
    assert runs[0].fingerprint == planned(registry, variant="mlm", corpus=corpus)[0].fingerprint


def test_the_fingerprint_changes_with_each_thing_that_determines_the_result(
    corpus: str, triplets: str, tiny: str, tmp_path: Path
) -> None:
    def fingerprint(sha256: str = "0" * 64, **values: Any) -> str:
        (run,) = planned(
            with_plugin(Varied, sha256),
            "varied",
            **{"backbones": (tiny,), "corpus": corpus} | values,
        )
        return run.fingerprint

    other_text = tmp_path / "other.txt"
    other_text.write_text("a man plays\nthe dog ran\n")
    other_model = Path(shutil.copytree(tiny, tmp_path / "other"))
    with (other_model / "config.json").open("a") as file:
        file.write("\n")
    changes: dict[str, dict[str, Any]] = {
        "nothing": {},
        "seed": {"seeds": (43,)},
        "plugin's code": {"sha256": "1" * 64},
        "corpus": {"corpus": str(other_text)},
        "backbone": {"backbones": (str(other_model),)},
        "a recipe value": {"overrides": {"batch_size": "65"}},
        "the method's value": {"overrides": {"temperature": "3"}},
        "variant": {"variant": "hot"},
        "variant that changes no value": {"variant": "same"},
        "setting": {"setting": "supervised", "corpus": triplets},
        "precision": {"precision": "bf16"},
        "selection": {"overrides": {"select_on": "last"}},
    }
    found = {name: fingerprint(**change) for name, change in changes.items()}
    assert len(set(found.values())) == len(found)
    renamed = Registry({"other": replace(with_plugin(Varied)["varied"], name="other")}, ())
    assert (
        planned(renamed, "other", backbones=(tiny,), corpus=corpus)[0].fingerprint
        not in found.values()
    )


def test_the_fingerprint_changes_with_nothing_else(
    registry: Registry, corpus: str, tiny: str, tmp_path: Path, shared: Path
) -> None:
    last = {"select_on": "last"}
    usual = {"backbones": (tiny,), "corpus": corpus, "overrides": last}

    def fingerprint(**values: Any) -> str:
        (run,) = planned(registry, **usual | values)
        return run.fingerprint

    packed, moved = tmp_path / "packed.txt.gz", tmp_path / "elsewhere" / "model"
    packed.write_bytes(gzip.compress(Path(corpus).read_bytes()))
    shutil.copytree(tiny, moved)
    first, data = fingerprint(), DataFolder(shared / "data")
    for name, change in {
        "data folder": {"data": DataFolder(tmp_path)},
        "file name and packing of the corpus": {"corpus": str(packed)},
        "setting that was the default": {"setting": "unsupervised"},
        "place of the backbone": {"backbones": (str(moved),)},
        "suite and protocol": {"suites": ("sts:senteval-all-raw/1", "check"), "data": data},
        "a value that was the default": {"overrides": last | {"batch_size": "64"}},
    }.items():
        assert fingerprint(**change) == first, name
    both = planned(registry, seeds=(41, 42), **usual)
    assert [run.fingerprint for run in both][1] == first


def test_precision_does_not_change_what_is_not_trained(registry: Registry, tiny: str) -> None:
    one, other = (
        planned(registry, "cls", backbones=(tiny,), precision=p)[0].fingerprint
        for p in ("fp32", "bf16")
    )
    assert one == other


def test_a_method_with_vectors_of_its_own_ignores_the_backbone(
    registry: Registry, tiny: str, tmp_path: Path
) -> None:
    vectors = tmp_path / "v.txt"
    vectors.write_text("a 1 2\n")
    overrides, names = {"vectors": str(vectors)}, ("builtin", tiny, "nonsense/of that name")
    (run,) = planned(registry, "glove-avg", backbones=names, overrides=overrides)
    assert run.run_id.startswith("glove-avg-glove-any-")
    assert run.backbone.name == "glove" and re.fullmatch("[0-9a-f]{64}", run.backbone.revision)
    vectors.write_text("a 1 3\n")
    assert planned(registry, "glove-avg", overrides=overrides)[0].fingerprint != run.fingerprint
    for bad in ({"vectors": ""}, {"vectors": str(tmp_path / "missing")}):
        with pytest.raises(BenchError, match="vectors"):
            planned(registry, "glove-avg", overrides=bad)


def test_without_a_corpus_the_recipes_own_is_taken(registry: Registry, tmp_path: Path) -> None:
    assert planned(registry)[0].corpus.name == "builtin"
    bert = {"backbones": ("bert-base-uncased",)}
    with pytest.raises(DataMissing, match="wiki1m_for_simcse.txt is not on this machine"):
        planned(registry, **bert)
    data, wiki = DataFolder(tmp_path), tmp_path / "train" / "wiki1m_for_simcse.txt"
    with pytest.raises(DataMissing, match="nli_for_simcse.csv"):
        planned(registry, **bert, setting="supervised", data=data)
    wiki.parent.mkdir()
    wiki.write_text("a line\n")
    assert planned(registry, **bert, data=data)[0].corpus.name == wiki.name


def test_the_backbone_is_made_ready_before_its_fingerprint_is_taken(
    registry: Registry, tiny: str
) -> None:
    """A model that had to be fetched must have the same run as one that was here already."""
    asked: list[str] = []

    def ready(reference: Any) -> Any:
        asked.append(reference.name)
        return replace(resolve(tiny), name=reference.name)

    def make_it() -> list[PlannedRun]:
        return plan_configs(
            [RunConfig(methods=("cls",), backbones=("someone/model",), suites=("check",))],
            registry,
            NO_DATA,
            ready,
        )

    (run,) = make_it()
    assert asked == ["someone/model"] and run.run_id.startswith("cls-model-any-")
    assert run.fingerprint == planned(registry, "cls", backbones=(tiny,))[0].fingerprint


def test_a_wider_corpus_can_be_told_to_be_sentences(registry: Registry, triplets: str) -> None:
    def run(**overrides: str) -> PlannedRun:
        where = {"setting": "unsupervised", "corpus": triplets}
        return planned(registry, **where, overrides=overrides)[0]

    with pytest.raises(BenchError, match="needs sentences; nli.csv has the columns sent0"):
        run()
    every, first = run(corpus_column="all"), run(corpus_column="sent0")
    assert every.corpus is not None and (every.corpus.kind, len(every.corpus)) == ("sentences", 6)
    assert first.fingerprint != every.fingerprint
    with pytest.raises(CorpusError, match="no column 'premise'"):
        run(corpus_column="premise")


class Fitted(Method):
    name = "fitted"
    settings = ("none",)
    defaults = {"place": None, "select_on": "last"}
    places = ("place",)
    deterministic = ("none",)

    def fit(self, corpus: Any, context: Any) -> None:
        pass

    def loss(self, views: Any, batch: Any) -> Any:
        raise NotImplementedError


def test_a_fitted_method_gets_a_corpus_and_a_place_is_named_by_its_content(
    corpus: str, tmp_path: Path
) -> None:
    own = Registry({"fitted": Plugin("fitted", Fitted, "test", "", "0" * 64)}, ())

    def run(place: Path | None = None) -> PlannedRun:
        overrides = {"place": str(place)} if place else {}
        return planned(own, "fitted", corpus=corpus, overrides=overrides)[0]

    plain = run()
    assert (plain.setting, plain.seed, plain.dev) == ("none", None, None) and plain.corpus
    one, other = tmp_path / "one.bin", tmp_path / "other.bin"
    one.write_bytes(b"same"), other.write_bytes(b"same")
    first = run(one).fingerprint
    assert first == run(other).fingerprint != plain.fingerprint
    other.write_bytes(b"different")
    assert run(other).fingerprint != first


def test_two_protocols_are_one_run(registry: Registry, tiny: str, shared: Path) -> None:
    data = DataFolder(shared / "data")

    def run(*suites: str) -> PlannedRun:
        (one,) = planned(registry, "cls", data=data, backbones=(tiny,), suites=suites)
        return one

    plain, raw = "geometry-stsb/1", "geometry-stsb-raw/1"
    both = run("geometry", f"geometry:{raw}", "check")
    assert [(task.name, task.protocol) for task in both.tasks] == [
        *((name, text) for text in (plain, raw) for name in ("alignment", "uniformity")),
        ("captions", "check/2"),
    ]
    hashes = [known.sha256 for known in both.task_data]
    assert hashes[0] == hashes[1] != hashes[2] == hashes[3]
    assert both.run_id == run(f"geometry:{raw}").run_id
    (one,) = run(f"geometry:uniformity,{raw}").tasks
    assert (one.name, one.protocol) == ("uniformity", raw)
    with pytest.raises(UnknownName, match="geometry-stsb-loud/1"):
        run("geometry:geometry-stsb-loud/1")
    with pytest.raises(BenchError, match="Tweet of the suite clustering is not scored under"):
        run("clustering:Tweet,sccl-kmeans-raw/1")


def test_the_target_corpus_holds_no_sentence_that_a_task_made(
    registry: Registry, tiny: str, shared: Path
) -> None:
    more = {"setting": "unsupervised", "overrides": {"select_on": "last"}, "corpus": "target"}
    data, suites = DataFolder(shared / "data"), ("geometry",)
    (run,) = planned(registry, data=data, backbones=(tiny,), suites=suites, **more)
    assert run.corpus is not None and len(run.corpus) == 2551


def test_a_series_of_recipe_values_is_a_run_for_each(registry: Registry, corpus: str) -> None:
    def run(temperature: str, *methods: str) -> list[PlannedRun]:
        values = {"temperature": temperature}
        return planned(registry, methods=methods, corpus=corpus, overrides=values, seeds=(1, 2))

    runs = run("0.05,0.1,0.1", "simcse", "cls")
    wanted = [*(("simcse", t, s) for t in (0.05, 0.1) for s in (1, 2)), ("cls", None, None)]
    assert [(r.method, r.recipe.get("temperature"), r.seed) for r in runs] == wanted
    assert [r.run_id for r in run("0.1", "simcse")] == [r.run_id for r in runs[2:4]]
    with pytest.raises(BenchError, match="expected a number"):
        run("0.05,warm", "simcse")


def test_allow_pickle_holds_for_the_encoders_that_a_recipe_names(
    registry: Registry, corpus: str, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from safetensors.torch import load_file

    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    teacher = shutil.copytree(tiny, tmp_path / "teacher")
    torch.save(load_file(teacher / "model.safetensors"), teacher / "pytorch_model.bin")
    (teacher / "model.safetensors").unlink()
    values: dict[str, Any] = {
        "backbones": (tiny,),
        "corpus": corpus,
        "overrides": {"teacher": str(teacher)},
    }
    with pytest.raises(BenchError, match="a pickle") as caught:
        planned(registry, "dclr", **values)
    assert "--allow-pickle" in str(caught.value.hint)
    allowed = planned(registry, "dclr", allow_pickle=True, **values)
    assert allowed[0].determines["places"]["teacher"] == resolve(str(teacher)).revision


def test_stsb_train_is_a_corpus_of_rated_pairs(shared: Path, tmp_path: Path) -> None:
    """5,749 pairs with scores from 0 to 1, written once; a plan on a machine without STS-B knows as
    much.
    """
    data = DataFolder(shared / "data")
    made = stsb_train(data)
    first = ("a plane is taking off .", "an air plane is taking off .", "1.0")
    assert (made.name, made.kind, len(made), next(made.rows())) == (
        "stsb-train",
        "graded",
        5749,
        first,
    )
    assert {0 <= float(row[2]) <= 1 for row in made.rows()} == {True}
    assert stsb_train(data).path == made.path
    absent = stsb_train(DataFolder(None, fetcher=Later()))
    assert (absent.kind, len(absent)) == ("graded", 5749)


def test_the_dev_set_is_part_of_the_fingerprint(
    registry: Registry, corpus: str, tiny: str, shared: Path
) -> None:
    usual = {"data": DataFolder(shared / "data"), "backbones": (tiny,), "corpus": corpus}
    dev = [{"select_on": one} for one in ("STS-B dev", "captions dev", "last")]
    found = [planned(registry, **usual, overrides=one)[0].fingerprint for one in dev]
    assert len(set(found)) == 3


def test_one_run_counts_for_all_seeds_of_a_method_without_anything_random(
    registry: Registry, tiny: str
) -> None:
    (run,) = planned(registry, "cls", backbones=(tiny,), seeds=(3, 4, 5))
    assert run.seed is None and run.run_id.startswith("cls-tiny-any-")
    assert "cls has nothing random: one run stands for all seeds" in run.notes
    assert run.corpus is None and run.setting == "none"
    assert not planned(registry, "cls", backbones=(tiny,))[0].notes
