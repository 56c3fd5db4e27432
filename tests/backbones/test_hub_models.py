"""Models of the hub, through its real client, from a stand-in hub on 127.0.0.1."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hub import StandInHub
from safetensors.torch import load_file

from bench.backbones import fetch_backbone, load, resolve, resolve_recorded
from bench.backbones.known_models import PINNED
from bench.base.errors import NotAModel

NAME = "someone/tiny-bert"


def files_of(folder: str | Path) -> dict[str, bytes]:
    return {
        f.relative_to(folder).as_posix(): f.read_bytes()
        for f in Path(folder).rglob("*")
        if f.is_file()
    }


def pickled(folder: str | Path, to: Path) -> Path:
    """The same model with its weights as torch.save writes them, and no safetensors."""
    shutil.copytree(folder, to)
    torch.save(load_file(to / "model.safetensors"), to / "pytorch_model.bin")
    (to / "model.safetensors").unlink()
    return to


def fetch_with_notes(name: str, **options: Any) -> tuple[Any, list[str]]:
    lines: list[str] = []
    return fetch_backbone(resolve(name), offline=False, say=lines.append, **options), lines


def refusal(name: str, **options: Any) -> NotAModel:
    with pytest.raises(NotAModel) as caught:
        fetch_backbone(resolve(name), offline=False, **options)
    assert "\n" not in caught.value.message and caught.value.hint
    assert "try:" not in caught.value.message
    return caught.value


def test_a_model_is_fetched_named_by_its_commit_and_found_again_without_a_network(
    hub: StandInHub, tiny: str
) -> None:
    extra = {
        "README.md": b"---\nlicense: apache-2.0\n---\n",
        "onnx/model.safetensors": b"x" * 99,
        "rust_model.ot": b"y",
        "tf_model.h5": b"z",
    }
    revision = hub.add("model", NAME, files_of(tiny) | extra)
    reference, lines = fetch_with_notes(NAME)
    assert (reference.revision, reference.hub, reference.model) == (revision, True, NAME)
    assert len(lines) == 1 and NAME in lines[0] and revision[:12] in lines[0] and "MB" in lines[0]
    assert not {
        f for f in ("onnx/model.safetensors", "rust_model.ot", "tf_model.h5") if hub.asked(f)
    }
    before = len(hub.requests)
    again = resolve(NAME)
    assert again == reference and fetch_backbone(again, offline=True) is again
    backbone = load(again, offline=True)
    torch.testing.assert_close(
        backbone.encoder.state_dict(), load(resolve(tiny)).encoder.state_dict(), rtol=0, atol=0
    )
    assert len(hub.requests) == before


def test_the_newest_is_what_was_fetched_first_and_a_revision_can_be_named(
    hub: StandInHub, tiny: str
) -> None:
    old = hub.add("model", NAME, files_of(tiny))
    assert fetch_with_notes(NAME)[0].revision == old
    new = hub.add("model", NAME, files_of(tiny) | {"changed.txt": b"1"})
    assert resolve(NAME).revision == old, "what is here stays"
    named, _ = fetch_with_notes(f"{NAME}@{new}")
    assert (named.revision, named.model, named.short) == (new, NAME, f"tiny-bert-{new}"[:60])
    assert resolve(NAME).revision == old
    exact = resolve_recorded(NAME, new)
    assert (exact.name, exact.revision) == (NAME, new), "a record's revision, whatever main is"
    error = refusal(f"{NAME}@{'f' * 40}")
    assert f"{NAME}/tree/{'f' * 40} is not there, or not public" in error.message


def test_known_names_are_pinned(hub: StandInHub, tiny: str) -> None:
    pin = PINNED["FacebookAI/roberta-large"]
    hub.add("model", "FacebookAI/roberta-large", files_of(tiny), revision=pin)
    newest = hub.add("model", "FacebookAI/roberta-large", files_of(tiny) | {"changed.txt": b"1"})
    assert newest != pin and fetch_with_notes("roberta-large")[0].revision == pin
    assert resolve("roberta-large").revision == pin


def test_gated_and_private_models_name_the_login_command(
    hub: StandInHub, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("model", "someone/gated", files_of(tiny), gated=True)
    hub.add("model", "someone/private", files_of(tiny), private=True)
    monkeypatch.setenv("HF_TOKEN", "hf_bad")
    gated = refusal("someone/gated")
    assert "not there, or not public" in gated.message and "hf auth login" in str(gated.hint)
    private = refusal("someone/private")
    assert "not there, or not public" in private.message and "hf auth login" in str(private.hint)
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    assert (
        load(fetch_with_notes("someone/gated")[0]).hidden_size
        == load(fetch_with_notes("someone/private")[0]).hidden_size
        == 32
    )


def test_a_pickle_is_taken_only_where_it_is_allowed(
    hub: StandInHub, tiny: str, tmp_path: Path
) -> None:
    revision = hub.add("model", NAME, files_of(pickled(tiny, tmp_path / "pickled")))
    error = refusal(NAME)
    assert "as a pickle only" in error.message and "--allow-pickle" in str(error.hint)
    assert not hub.asked("pytorch_model.bin", "GET")
    reference, _ = fetch_with_notes(NAME, allow_pickle=True)
    assert reference.revision == revision
    assert reference.path is not None and (reference.path / "pytorch_model.bin").exists()
    torch.testing.assert_close(
        load(reference).encoder.state_dict(),
        load(resolve(tiny)).encoder.state_dict(),
        rtol=0,
        atol=0,
    )
    before = len(hub.requests)
    assert resolve(NAME) == reference and len(hub.requests) == before


def test_what_is_refused_when_it_is_fetched_is_refused_from_the_cache(
    hub: StandInHub, tiny: str
) -> None:
    adapter = {"adapter_config.json": b'{"base_model_name_or_path": "someone/base"}'}
    hub.add("model", NAME, files_of(tiny) | adapter)
    assert "is an adapter" in refusal(NAME).message
    with pytest.raises(NotAModel, match="is an adapter"):
        resolve(NAME)


def test_a_download_that_was_cut_is_not_taken_for_whole(hub: StandInHub, tiny: str) -> None:
    """One of two files is here: the next command fetches the other."""
    hub.add("model", NAME, files_of(tiny))
    reference, _ = fetch_with_notes(NAME)
    assert reference.path is not None
    (reference.path / "model.safetensors").unlink()
    assert resolve(NAME).path is None
    assert fetch_with_notes(NAME)[0] == reference and resolve(NAME) == reference
