"""``bench push`` against the stand-in hub, through the real client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from commands import bench, error_line
from hub import StandInHub

Finished = tuple[Path, Result]


@pytest.mark.slow
def test_an_export_is_pushed_in_one_commit_and_comes_back(
    hub: StandInHub, finished: Finished, tmp_path: Path, no_network: list[object]
) -> None:
    done = bench(
        "push",
        "simcse",
        "me/small",
        "--runs",
        finished[0],
        "--private",
        "--json",
        HF_TOKEN="hf_good",
        HF_HUB_OFFLINE="0",
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    (upload,) = hub.uploads
    assert (said["name"], said["revision"], said["url"]) == (
        "me/small",
        upload["revision"],
        f"{hub.url}/me/small",
    )
    assert {"README.md", "modules.json", "model.safetensors", "1_Pooling/config.json"} <= set(
        upload["files"]
    )
    assert hub.repos["model", "me/small"].private and upload["summary"].startswith(
        "bench push simcse"
    )
    assert 'SentenceTransformer("me/small")' in upload["files"]["README.md"].decode()

    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download("me/small", token="hf_good", cache_dir=tmp_path / "cache"))
    (tmp_path / "made").mkdir()
    again = bench("export", "simcse", "--runs", finished[0], "--to", tmp_path / "made" / "x")
    assert again.exit_code == 0
    assert (folder / "model.safetensors").read_bytes() == (
        tmp_path / "made" / "x" / "model.safetensors"
    ).read_bytes()

    # the repository is not empty any more
    line = error_line(
        bench(
            "push",
            "simcse",
            "me/small",
            "--runs",
            finished[0],
            HF_TOKEN="hf_good",
            HF_HUB_OFFLINE="0",
        )
    )
    assert "me/small holds" in line and len(hub.uploads) == 1
    hub.add("model", "me/small", {**hub.uploads[0]["files"], "old.txt": b"of before"})
    done = bench(
        "push",
        "simcse",
        "me/small",
        "--runs",
        finished[0],
        "--replace",
        "--format",
        "transformers",
        HF_TOKEN="hf_good",
        HF_HUB_OFFLINE="0",
    )
    assert done.exit_code == 0, done.output
    assert {"old.txt", "modules.json"} <= set(
        hub.uploads[1]["deleted"]
    ) and "bench.json" in hub.uploads[1]["files"]


@pytest.mark.parametrize(
    ("arguments", "env", "said", "hint"),
    [
        (("me/small",), {}, "the hub does not know who you are", "hf auth login"),
        (
            ("me/small",),
            {"HF_TOKEN": "hf_bad"},
            "the hub does not know who you are",
            "hf auth login",
        ),
        (
            ("me/small", "--offline"),
            {"HF_TOKEN": "hf_good"},
            "--offline forbids a connection",
            "bench export RUN --to DIR",
        ),
        (
            ("me/small",),
            {"HF_HUB_OFFLINE": "1"},
            "HF_HUB_OFFLINE forbids a connection",
            "bench export RUN --to DIR",
        ),
        (("small",), {}, "'small' is no name of a repository", "owner/name"),
        (("a/b/c",), {}, "'a/b/c' is no name of a repository", "owner/name"),
        (
            ("me/small", "--format", "mtbe"),
            {},
            "unknown format 'mtbe'; nearest: mteb",
            "bench export --help",
        ),
    ],
)
def test_mistakes_send_nothing(
    arguments: tuple[str, ...],
    env: dict[str, str],
    said: str,
    hint: str,
    hub: StandInHub,
    finished: Finished,
) -> None:
    done = bench(
        "push", "simcse", *arguments, "--runs", finished[0], **{"HF_HUB_OFFLINE": "0", **env}
    )
    assert said in error_line(done) and hint in done.stderr
    assert hub.uploads == []


@pytest.mark.parametrize(
    ("path", "status", "code", "said"),
    [
        ("whoami-v2", 500, 1, "the hub answered 500"),
        ("repos/create", 403, 2, "your token may not write there"),
        ("commit/main", 403, 2, "your token may not write there"),
    ],
)
def test_what_the_hub_refuses(
    path: str, status: int, code: int, said: str, hub: StandInHub, finished: Finished
) -> None:
    hub.fault(path, status=status, times=None, methods=("GET", "POST"))
    done = bench(
        "push", "simcse", "me/small", "--runs", finished[0], HF_TOKEN="hf_good", HF_HUB_OFFLINE="0"
    )
    assert said in error_line(done, code)
    assert hub.uploads == []
