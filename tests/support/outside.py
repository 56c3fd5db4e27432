"""Loads exports as a stranger would: a process in which ``bench`` cannot be imported.

Run by the tests.

argv: what to do, a folder of exports (or one export), a JSON file of sentences, the .npz to write.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

SAVED_AGAIN = (
    "promcse+tiny",
    "conpvp+roberta",
    "flow+tiny",
)


class NotHere:
    """The first finder of modules: for it, bench is installed nowhere."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "bench":
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)


def hide() -> None:
    sys.meta_path.insert(0, NotHere())  # type: ignore[arg-type]
    try:
        importlib.import_module("bench")
    except ModuleNotFoundError:
        return
    raise AssertionError("bench can be imported")


def sentence_transformers(folder: Path, sentences: list[str]) -> dict[str, Any]:
    """Encode with every export in the folder; with trust only if a source file is part of it.

    Those in SAVED_AGAIN are also saved by the library and loaded from there, as after further
    training: "again NAME".
    """
    from sentence_transformers import SentenceTransformer

    def load(place: Path, trust: bool = False) -> Any:
        options = {"device": "cpu", "local_files_only": True, "trust_remote_code": trust}
        return SentenceTransformer(str(place), **options)

    found = {}
    for one in sorted(folder.iterdir()):
        trust = any(one.glob("*.py"))
        if trust:
            try:
                load(one)
            except ValueError as error:
                assert "trust_remote_code=True" in str(error)
            else:
                raise AssertionError(f"{one.name} ran code that nobody allowed")
        model = load(one, trust)
        found[one.name] = model.encode(sentences, batch_size=3)
        if one.name in SAVED_AGAIN:
            place = folder.parent / "again" / one.name
            model.save(str(place), create_model_card=False)
            found[f"again {one.name}"] = load(place, True).encode(sentences, batch_size=3)
    return found


if __name__ == "__main__":
    hide()
    import numpy as np

    folder, sentences, to = sys.argv[1:]
    texts = json.loads(Path(sentences).read_text(encoding="utf-8"))
    np.savez(to, **sentence_transformers(Path(folder), texts))
