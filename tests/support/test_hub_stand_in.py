"""The stand-in hub answers the real client as the hub does."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub
import pytest
from hub import StandInHub
from huggingface_hub.errors import GatedRepoError

FILES = {
    "config.json": b'{"a": 1}',
    "model.safetensors": bytes(range(256)) * 40,
    "sub/merges.txt": b"a b\n",
}


@pytest.mark.parametrize("kind", ["model", "dataset"])
def test_a_snapshot_arrives_whole_at_its_revision(
    hub: StandInHub, no_network: list[object], kind: str, tmp_path: Path
) -> None:
    old = hub.add(kind, "owner/name", {"config.json": b"{}"})
    new = hub.add(kind, "owner/name", FILES)
    folder = Path(huggingface_hub.snapshot_download("owner/name", repo_type=kind))
    assert folder.name == new and tmp_path in folder.parents
    assert {
        str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    } == FILES
    older = Path(
        huggingface_hub.hf_hub_download("owner/name", "config.json", repo_type=kind, revision=old)
    )
    assert older.read_bytes() == b"{}" and not no_network


def test_lfs_content_comes_from_another_host_without_the_token(hub: StandInHub) -> None:
    hub.add("model", "owner/name", FILES, gated=True)
    with pytest.raises(GatedRepoError):
        huggingface_hub.hf_hub_download("owner/name", "model.safetensors")
    path = huggingface_hub.hf_hub_download("owner/name", "model.safetensors", token="hf_good")
    assert Path(path).read_bytes() == FILES["model.safetensors"]
    (content,) = [
        one for one in hub.requests if one.path.startswith("/cdn/") and one.method == "GET"
    ]
    assert content.headers["host"].startswith("localhost")


def test_a_pushed_repository_can_be_fetched(hub: StandInHub, tmp_path: Path) -> None:
    for path, data in FILES.items():
        (tmp_path / "out" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / path).write_bytes(data)
    api = huggingface_hub.HfApi(token="hf_good", endpoint=hub.url)
    api.create_repo("tester/mine")
    api.upload_folder(repo_id="tester/mine", folder_path=tmp_path / "out", commit_message="first")
    assert hub.uploads[0]["files"] == FILES and hub.uploads[0]["summary"] == "first"
    path = huggingface_hub.hf_hub_download("tester/mine", "model.safetensors")
    assert Path(path).read_bytes() == FILES["model.safetensors"]
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError):
        huggingface_hub.HfApi(token="hf_bad", endpoint=hub.url).create_repo("tester/other")
