"""``bench backbones NAME --fetch --check``: a model of the hub, as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import bench, error_line
from hub import StandInHub


@pytest.fixture
def model(tiny: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(tiny).iterdir()}


def test_a_model_is_shown_fetched_and_checked(hub: StandInHub, model: dict[str, bytes]) -> None:
    revision = hub.add("model", "someone/tiny", model | {"README.md": b"---\nlicense: mit\n---\n"})
    before = bench("backbones", "someone/tiny")
    assert before.exit_code == 0 and "not on this machine" in before.stdout and hub.requests == []
    assert "'someone/tiny' is not on this machine" in error_line(
        bench("backbones", "someone/tiny", "--check")
    )
    fetched = bench("backbones", "someone/tiny", "--fetch", "--check")
    assert fetched.exit_code == 0, fetched.stderr
    assert f"fetching backbone someone/tiny: someone/tiny at {revision[:12]}" in fetched.stderr
    for said in (revision, "none missing; not used: cls", "[CLS] a sentence . [SEP]"):
        assert said in " ".join(fetched.stdout.split())
    facts = json.loads(bench("backbones", "someone/tiny", "--check", "--json").stdout)
    assert (facts["family"], facts["MLM head"], facts["deep prompt"], facts["dropout"]) == (
        "bert",
        "yes",
        "yes",
        0.1,
    )


def test_a_pickle_is_refused_and_with_leave_converted_for_good(
    hub: StandInHub, model: dict[str, bytes], tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load

    torch.save(load(model.pop("model.safetensors")), tmp_path / "weights.bin")
    hub.add(
        "model",
        "someone/old",
        model | {"pytorch_model.bin": (tmp_path / "weights.bin").read_bytes()},
    )
    refused = bench("backbones", "someone/old", "--fetch")
    assert "as a pickle only" in error_line(refused) and "--allow-pickle" in refused.stderr
    assert bench("backbones", "someone/old", "--fetch", "--allow-pickle").exit_code == 0
    ready = bench("backbones", "someone/old", "--check")
    assert ready.exit_code == 0 and "none missing" in " ".join(ready.stdout.split())


def test_every_known_name_has_a_pinned_commit() -> None:
    from bench.backbones import KNOWN
    from bench.backbones.hub import PINNED, repositories

    assert {repositories(name)[0] for name in KNOWN if name != "builtin"} == set(PINNED)
    assert all(
        len(commit) == 40 and set(commit) <= set("0123456789abcdef") for commit in PINNED.values()
    )
