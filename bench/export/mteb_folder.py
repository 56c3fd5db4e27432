"""A sentence-transformers folder for mteb: ``mteb_model.py``, and result files as mteb keeps them.

``mteb.ResultCache(DIR).load_results(include_remote=False)`` reads the results.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from bench.base.errors import DataMissing
from bench.export.exported import Exported
from bench.method.json_files import read_json
from bench.records.damage import AGAIN, foreign_files
from bench.records.record import AVERAGE, RunRecord, Score
from bench.run.finished import TrainedRun

MTEB_FILE = "mteb_model.py"
COMMIT_LENGTH = 40
SOURCE = '''"""The model of this folder for mteb.

    python {file} STS12 STSBenchmark

evaluates it on tasks, and so does

    import mteb, mteb_model
    mteb.evaluate(mteb_model.load(), mteb.get_tasks(tasks=["STS12"]))
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path
from typing import Any

import mteb
from mteb.models import ModelMeta
from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper

FOLDER = Path(__file__).resolve().parent


def loader(
    model_name: str, revision: str | None = None, device: str | None = None, **kwargs: Any
) -> Any:
    kwargs.pop("embed_dim", None)
    return SentenceTransformerEncoderWrapper(
        str(FOLDER), device=device, trust_remote_code={trust}, **kwargs
    )


meta = ModelMeta(
    loader=loader,
{facts}
)


def load(device: str | None = None) -> Any:
    model = meta.load_model(device=device)
    model.mteb_model_meta = meta
    return model


if __name__ == "__main__":
    print(mteb.evaluate(load(), mteb.get_tasks(tasks=sys.argv[1:] or ["STS12"])))
'''


def write_mteb_model(run: TrainedRun, exported: Exported, folder: Path) -> None:
    """Write ``mteb_model.py``, which loads the folder's model for mteb."""
    lines = [f"    {key}={value}," for key, value in mteb_facts(run, exported, folder).items()]
    text = SOURCE.format(file=MTEB_FILE, trust=bool(exported.module_files), facts="\n".join(lines))
    (folder / MTEB_FILE).write_text(text, encoding="utf-8")


def mteb_facts(run: TrainedRun, exported: Exported, folder: Path) -> dict[str, str]:
    """Return ModelMeta's fields as Python source; unknown ones are None, never a guess."""
    record = run.record
    settings = folder / "sentence_bert_config.json"
    max_tokens = read_json(settings).get("max_seq_length") if settings.is_file() else None
    weight_bytes = sum(file.stat().st_size for file in folder.rglob("*.safetensors"))
    values: dict[str, Any] = {
        "name": f"bench/{record.run_id}",
        "revision": record.fingerprint[:16],
        "languages": None,
        "n_parameters": record.cost.total_parameters,
        "n_embedding_parameters": None,
        "memory_usage_mb": round(weight_bytes / 2**20, 1),
        "max_tokens": max_tokens,
        "embed_dim": exported.dimensions,
        "license": None,
        "open_weights": True,
        "public_training_code": None,
        "public_training_data": None,
        "framework": ["Sentence Transformers", "PyTorch", "safetensors"],
        "reference": None,
        "similarity_fn_name": "cosine",
        "use_instructions": False,
        "training_datasets": None,
        "adapted_from": hub_backbone(record),
        "superseded_by": None,
        "citation": run.plugin.cls.paper or None,
        "contacts": None,
        "modalities": ["text"],
    }
    source = {key: repr(value) for key, value in values.items()}
    year, month, day = map(int, record.provenance.created[:10].split("-"))
    source["release_date"] = f"date({year}, {month}, {day}).isoformat()"
    return source


def hub_backbone(record: RunRecord) -> str | None:
    """Return the backbone's name if it is a model of the hub, else None."""
    revision = record.provenance.backbone.revision or ""
    if len(revision) != COMMIT_LENGTH or Path(record.backbone).exists():
        return None
    return record.backbone


def write_mteb_results(record: RunRecord, run_folder: Path, to: Path) -> list[Path]:
    """Copy the files that mteb wrote when it scored its tasks to
    ``to/results/<model>/<revision>/<task>.json``, and return them in score order.

    Scores of our own suites have none: mteb's STS12 is another protocol. Raises DataMissing if a
    file that mteb wrote is gone.
    """
    scores = [one for one in record.scores if one.suite == "mteb" and one.task != AVERAGE]
    return [_copy_result(record, score, run_folder, to) for score in scores]


def _copy_result(record: RunRecord, score: Score, run_folder: Path, to: Path) -> Path:
    """Copy the file that mteb wrote, and its neighbours about the model and the call."""
    paths = foreign_files(score, run_folder)
    # chosen subsets are written behind the task's name: "TASK:de,en"
    task = score.task.partition(":")[0]
    file = next((p for p in paths if p.name == f"{task}.json" and p.is_file()), None)
    if file is None:
        raise DataMissing(
            f"{record.run_id}: the result file that mteb wrote for {score.task} is missing from "
            f"{run_folder}",
            AGAIN,
        )
    inside = file.relative_to(run_folder / "mteb").parts
    target = to.joinpath(*inside[inside.index("results") :])
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_file():
        _join_subsets(file, target)
    else:
        shutil.copyfile(file, target)
    for name in ("model_meta.json", "run_settings.jsonl"):
        if file.with_name(name).is_file():
            shutil.copyfile(file.with_name(name), target.with_name(name))
    return target


def _join_subsets(file: Path, target: Path) -> None:
    """Add the scores of one result file of mteb to another file with other subsets."""
    result = json.loads(target.read_text(encoding="utf-8"))
    more = json.loads(file.read_text(encoding="utf-8"))
    for split, parts in more["scores"].items():
        known = result["scores"].setdefault(split, [])
        there = {part["hf_subset"] for part in known}
        for part in parts:
            if part["hf_subset"] not in there:
                known.append(part)
    target.write_text(json.dumps(result, indent=2), encoding="utf-8")
