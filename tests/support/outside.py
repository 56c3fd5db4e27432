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


def mteb(folder: Path, sentences: list[str]) -> dict[str, Any]:
    """Score the export's own mteb_model.py with mteb, on a task made of the sentences."""
    sys.path.insert(0, str(folder))
    import mteb as library
    import mteb_model
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    unknown = "date domains task_subtypes license annotations_creators dialect sample_creation"
    facts: dict[str, Any] = dict.fromkeys([*unknown.split(), "reference"])
    facts |= {"name": "Small", "description": "", "bibtex_citation": "", "modalities": ["text"]}
    facts |= {"dataset": {"path": "local", "revision": "1"}, "type": "STS", "category": "t2t"}
    facts |= {"eval_splits": ["test"], "eval_langs": ["eng-Latn"]}

    class Small(AbsTaskSTS):
        metadata = TaskMetadata(main_score="cosine_spearman", **facts)

        def load_data(self, **_: Any) -> None:
            scores = list(range(len(sentences) - 1))
            rows = {"sentence1": sentences[:-1], "sentence2": sentences[1:], "score": scores}
            self.dataset = DatasetDict(test=Dataset.from_dict(rows))
            self.data_loaded = True

    result = library.evaluate(mteb_model.load("cpu"), [Small()], cache=None)
    meta = mteb_model.meta
    assert (meta.name or "").startswith("bench/") and meta.embed_dim and meta.n_parameters
    return {"score": result.task_results[0].get_score()}


if __name__ == "__main__":
    hide()
    import numpy as np

    what, folder, sentences, to = sys.argv[1:]
    function = {"sentence-transformers": sentence_transformers, "mteb": mteb}[what]
    np.savez(to, **function(Path(folder), json.loads(Path(sentences).read_text(encoding="utf-8"))))
