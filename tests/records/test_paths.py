"""Published files name no folder of anybody's machine: absolute paths of all systems are found and
replaced by names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from factories import record
from msgspec.structs import replace

from bench.base.errors import DataDamaged
from bench.base.paths import (
    find_path,
    find_path_in_command,
    hide_paths,
    path_name,
    recorded_command,
    recorded_path,
)
from bench.base.places import recall_place, remember_place
from bench.records.paths import paths_in, refuse_paths

PATHS = [
    "/home/ada/x",
    "/data",
    "cannot read /home/ada/x.txt: gone",
    "~/x",
    "~ada/x",
    "~",
    "C:\\Users\\ada",
    "c:/Users/ada",
    "\\\\server\\share\\x",
    "\\\\?\\C:\\x",
    "//server/share/x",
    "file:///home/ada",
    "FILE://C:/x",
    "smb://server/x",
    "teacher=/home/ada/x",
    "vectors:/home/a.npz",
    "mini=/models/mini",
    "a,/b/c",
    "['/home/ada lovelace/x']",
    'cannot read "/a/b"',
    "one\n/home/ada/y",
    "/my texts/of/ada",
    "/home/ädä/x",
    "@/home/x/y",
    "$HOME/x",
    "${SCRATCH}/runs/x",
    "%USERPROFILE%\\x",
    "$env:APPDATA\\x",
    "ssh://server/home/ada",
    "vscode-remote://ssh-remote+gpu/home/ada",
    "C:Users\\ada\\x",
    "\\Users\\ada\\x",
    "a;b&/home/ada/x",
    "“/srv/ada/x”",
    "</srv/ada/x>",
    "\ufeff/srv/ada/x",
    "../../home/ada/x",
    "x&/Users/ada/x",
]
NO_PATHS = [
    "",
    "senteval-all/1",
    "owner/name",
    "hub:owner/name@abc:text",
    "https://example.org/a/b",
    "http://localhost:8000/v1/embeddings",
    "https://arxiv.org/abs/2104.08821 (tables 1/2)",
    'This sentence : " [X] " means <mask> .</s>',
    "and/or",
    "1/2",
    "+/- 3",
    "a / b",
    "~5 %",
    "~0.3",
    "runs/x",
    "./x",
    "../x/y",
    "C:",
    "10/10/2026",
    "\\alpha\\beta",
    "http://localhost/home/ada",
    "owner/home/x",
    "$x/y$",
    "5 %/h",
    "US$/h",
]


def test_absolute_paths_are_found_and_nothing_else_is() -> None:
    assert [text for text in PATHS if find_path(text) is None] == []
    assert [text for text in NO_PATHS if find_path(text) is not None] == []


def test_a_prompt_is_no_folder_because_it_begins_with_a_slash() -> None:
    assert find_path("/no_think [X]", is_prompt=True) is None
    assert find_path("/no_think", is_prompt=True) is None
    assert find_path("see /home/ada/x", is_prompt=True) == "/home/ada/x"


def test_a_path_is_named_relative_to_the_working_directory_or_by_its_last_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/ada/work"))
    assert recorded_path("/home/ada/work/texts/nli.csv") == "texts/nli.csv"
    assert recorded_path("/home/ada/other/nli.csv") == "nli.csv"
    assert recorded_path("/home/ada/working/nli.csv") == "nli.csv"
    assert recorded_path("../other/nli.csv") == "nli.csv"
    assert recorded_path("../work/nli.csv") == "nli.csv"
    assert recorded_path("texts/nli.csv") == "texts/nli.csv"
    assert recorded_path("owner/name") == "owner/name"
    assert recorded_path("file:///home/ada/work/x.csv") == "x.csv"
    assert recorded_path("D:\\texts\\nli.csv") == "nli.csv"
    assert path_name("/home/ada/mini/checkpoint") == "mini"
    assert path_name("/") == "local folder"


def test_a_command_is_repeated_in_the_folder_of_its_author(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/ada/work"))
    words = ["bench", "run", "found.toml", "--data", "/data", "--runs=/home/ada/work/runs"]
    words += ["--corpus", "/home/ada/my texts/nli.csv", "--backbone", "mini=/m/mini,builtin"]
    words += ["--set", "teacher=/t/simcse-builtin-s1-01234567/checkpoint", "--prefix", "/no_think"]
    words += ["vectors:/home/v.npz", "https://host/v1/embeddings", "--set", "prompt=/a/b [X]"]
    words += ["--suite", "retrieval:/data/asked", "--suite=pairs:own=/data/a.tsv:text,other,score"]
    words += ["--prompt-query", "/query"]
    made = recorded_command(words)
    assert made == (
        "bench run found.toml --data data --runs=runs --corpus nli.csv "
        "--backbone mini=mini,builtin "
        "--set teacher=simcse-builtin-s1-01234567 --prefix /no_think vectors:v.npz "
        "https://host/v1/embeddings --set 'prompt=/a/b [X]' "
        "--suite retrieval:asked --suite=pairs:own=a.tsv:text,other,score --prompt-query /query"
    )


@pytest.mark.parametrize(
    "command",
    ["bench run --data /data", "bench run --data=/data", "bench run --backbone mini=/m,builtin"],
)
def test_a_word_of_a_command_is_a_folder_without_a_second_part(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/nowhere"))
    found = find_path_in_command(command)
    assert found is not None and found.startswith("/")
    hidden = recorded_command(command.split())
    assert find_path_in_command(hidden) is None
    assert find_path_in_command("bench evaluate m --prefix /no_think --suite sts") is None


def test_a_sentence_keeps_everything_but_the_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "cwd", lambda: Path("/mnt/w"))
    said = hide_paths("/home/ada/x.csv: row 3 (see '/mnt/w/y.csv')")
    assert said == "x.csv: row 3 (see 'y.csv')"


def test_every_field_of_a_record_is_looked_at() -> None:
    whole = record("simcse", 1).to_json()
    leaves = list(texts_of(whole))
    assert len(leaves) > 20 and not list(paths_in(whole))
    for where in leaves:
        changed = json.loads(json.dumps(whole))
        holder: Any = changed
        for key in where[:-1]:
            holder = holder[key]
        holder[where[-1]] = "/home/ada/secret"
        ((field, path),) = paths_in(changed)
        assert path == "/home/ada/secret" and str(where[-1]) in field
    changed = {**whole, "checkpoint": {"/home/ada/secret": "0"}}
    assert [path for _, path in paths_in(changed)] == ["/home/ada/secret"]


def texts_of(value: Any, where: tuple[Any, ...] = ()) -> Any:
    """Find the places of all texts in a JSON value."""
    if isinstance(value, str):
        yield where
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(item, (*where, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from texts_of(item, (*where, number))


def test_the_refusal_names_the_field_and_gives_no_folder_away() -> None:
    one = record("simcse", 1)
    one = replace(
        one, provenance=replace(one.provenance, command="bench run --data /home/ada/sets")
    )
    with pytest.raises(DataDamaged) as caught:
        refuse_paths(one.to_json(), "run.json")
    assert "run.json: provenance.command" in caught.value.message
    assert "'sets'" in caught.value.message and "ada" not in caught.value.message


def test_a_place_is_known_to_this_machine_alone(tmp_path: Path) -> None:
    content, place = "a" * 64, tmp_path / "models" / "mini"
    remember_place(tmp_path / "runs", content, place)
    assert recall_place(tmp_path / "runs", content) is None  # nothing is there
    place.mkdir(parents=True)
    assert recall_place(tmp_path / "runs", content) == place
    assert recall_place(tmp_path / "runs", "../x") is None
    remember_place(tmp_path / "runs", "../x", place)
    lines = (tmp_path / "runs" / ".places").read_text(encoding="utf-8").splitlines()
    assert [line.split()[0] for line in lines] == [content]
