"""Names of backbones: ready-made encoders are rows of one table, called by a name that a reader
knows, never by a path; a name that this project does not know is asked of the hub.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import argv, bench, error_line
from factories import record
from hub import StandInHub
from msgspec.structs import replace

from bench.compare.statistics.summary import summarise
from bench.records import BackboneUsed, RunRecord

COMMAND = argv("run --method pretrained --set pooling=mean --suite check --device cpu")


@pytest.fixture(scope="module")
def encoders(
    tiny: str, tiny_roberta: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Two folders with different weights; the second has a model card."""
    folder = tmp_path_factory.mktemp("encoders")
    first, second = folder / "plain-encoder", folder / "checkpoint"
    shutil.copytree(tiny, first)
    shutil.copytree(tiny_roberta, second)
    (second / "README.md").write_text("---\nmodel-index:\n- name: Card Encoder\n---\n# It\n")
    return first, second


@pytest.mark.slow
@pytest.mark.usefixtures("short_check")
def test_two_encoders_are_two_named_rows_of_one_table(
    encoders: tuple[Path, Path], tmp_path: Path
) -> None:
    both, runs = ",".join(map(str, encoders)), tmp_path / "runs"

    def compared(*options: str) -> set[str]:
        shown = bench("compare", "--runs", runs, "--format", "json", *options)
        (table,) = json.loads(shown.stdout)["tables"]
        return {row["backbone"] for row in table["rows"]}

    done = bench(*COMMAND, "--backbone", both, "--runs", runs)
    assert done.exit_code == 0, done.stderr
    assert compared() == {"plain-encoder", "Card Encoder"}
    assert compared("--backbone", "Card Encoder") == {"Card Encoder"}
    assert str(encoders[0].parent) not in bench("compare", "--runs", runs).stdout

    named = ",".join(
        f"{name}={place}" for name, place in zip(("Small", "Large"), encoders, strict=True)
    )
    again = bench(*COMMAND, "--backbone", named, "--runs", runs)
    assert again.stderr.count("nothing repeated") == 2, "a name is no part of what is computed"
    records = [json.loads(path.read_text()) for path in sorted(runs.glob("*/run.json"))]
    known = {one["provenance"]["backbone"]["title"]: one for one in records}
    assert set(known) == compared() == {"Small", "Large"}
    loaded = {one["provenance"]["backbone"]["name"] for one in records}
    assert "plain-encoder" in loaded and not any("/" in name for name in loaded)
    to = ("--to", tmp_path / "model", "--runs", runs)
    exported = bench("export", known["Small"]["run_id"], *to)
    assert exported.exit_code == 0, exported.stderr
    for names in (("same", "same"), ("roberta-base", "mine")):
        named = ",".join(f"{name}={place}" for name, place in zip(names, encoders, strict=True))
        error_line(bench(*COMMAND, "--backbone", named, "--runs", runs))


def test_the_same_weights_in_two_folders_are_one_backbone() -> None:
    """Each folder has one run: the newer represents both, as two runs of one seed would."""
    scores = record("cls", None).scores

    def run(place: str, run_id: str, revision: str) -> RunRecord:
        usual = {"setting": "none", "training": None, "scores": scores}
        made = record("pretrained", None, backbone=place, **usual)
        facts = replace(
            made.provenance, backbone=BackboneUsed(**{"name": place, "revision": revision})
        )
        return replace(made, run_id=run_id, provenance=facts)

    places = (("/a/minilm", "one", "x"), ("/b/minilm", "two", "x"), ("/c/minilm", "three", "y"))
    (table,) = summarise([run(*place) for place in places])
    assert [row.backbone for row in table.rows] == ["minilm", "minilm"]
    assert len({row.differs for row in table.rows}) == 2


DRY_RUN = argv("run promcse --suite check --corpus builtin --set select_on=last --dry-run")


@pytest.mark.usefixtures("hub")
def test_a_name_that_the_hub_does_not_have_is_refused_with_the_nearest_known_one() -> None:
    done = bench(*DRY_RUN, "--backbone", "bert-bas")
    assert "'bert-bas'" in error_line(done) and "nearest: bert-base-uncased" in error_line(done)
    assert "try: --backbone bert-base-uncased;" in done.stderr


def test_the_hub_says_how_large_a_model_is(hub: StandInHub, tiny: str) -> None:
    files = {file.name: file.read_bytes() for file in Path(tiny).iterdir()}
    hub.add("model", "me/mine", files)
    done = bench(*DRY_RUN, "--backbone", "me/mine", "--json")
    assert done.exit_code == 0, done.stderr
    (asked,) = json.loads(done.stdout)["to_fetch"]
    assert asked["bytes"] >= len(files["model.safetensors"]) and "unchecked" not in asked["where"]


def test_a_hub_that_does_not_answer_leaves_a_name_unchecked(hub: StandInHub) -> None:
    hub.fault("/api/models/bert-bas/revision/main", status=503, times=None)
    done = bench(*DRY_RUN, "--backbone", "bert-bas")
    assert done.exit_code == 0, done.stderr
    assert "unchecked: no answer of the hub; nearest known name: bert-base-uncased" in done.stdout


def test_a_name_is_unchecked_offline(hub: StandInHub) -> None:
    done = bench(*DRY_RUN, "--backbone", "bert-bas", "--offline")
    assert done.exit_code == 0 and hub.requests == [], done.stderr
    assert "unchecked: offline; nearest known name: bert-base-uncased" in done.stdout


def test_a_dry_run_on_a_known_backbone_asks_nobody(hub: StandInHub) -> None:
    done = bench(*DRY_RUN, "--backbone", "bert-base-uncased")
    assert done.exit_code == 0 and hub.requests == [], done.stderr
