"""A run's scores in the forms that others read: the hub's ``.eval_results/*.yaml`` for model pages, the JSON of Every Eval Ever, and
mteb's result files, laid out as mteb keeps them; and ``mteb_model.py``, with what mteb wants to know of a model and how to load it.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.base.errors import BenchError, DataMissing
from bench.compare.statistics.table import Cell, Spread, Table
from bench.compare.tables import TableOptions, compare_runs
from bench.method import read_json
from bench.records.record import AVERAGE, RunRecord, Score
from bench.records.store import AGAIN, Run, data_key, foreign_files
from bench.run.plan import TrainedRun
from bench.score.suites import find_metric

HUB, EVERY_EVAL_EVER = "eval-results", "every-eval-ever"
FORMATS = (HUB, EVERY_EVAL_EVER)
SCHEMA_VERSION = "0.3.0"  # of github.com/evaleval/every_eval_ever, eval.schema.json


def results_text(run: Run, form: str) -> str:
    """The content of a file in one of ``FORMATS``: JSON, which is YAML too. Raises BenchError where no score belongs in it."""
    content = hub_results(run.record) if form == HUB else every_eval_ever(run)
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def scored_cells(run: Run) -> Iterator[tuple[Table, str, Cell]]:
    """(table, task, cell) of every score of a run, with the interval that ``bench compare`` gives it."""
    return (
        (table, task, cell)
        for table in (compare_runs([run], TableOptions()) if run.scores else ())
        for task, cell in zip(table.columns, table.rows[0].cells, strict=True)
        if cell is not None
    )


# --- https://huggingface.co/docs/hub/eval-results ---


def hub_results(record: RunRecord) -> list[dict[str, Any]]:
    """An entry for each score of the suite mteb: the other suites score data under protocols that no data set of the hub has."""
    entries = []
    for score in record.scores:
        source = score.detail.get("dataset")
        if score.suite != "mteb" or not isinstance(source, dict) or "path" not in source:
            continue
        dataset = {"id": source["path"], "task_id": score.task}
        if re.fullmatch("[0-9a-f]{40}", str(source.get("revision"))):
            dataset["revision"] = source["revision"]
        entries.append(
            {
                "dataset": dataset,
                "value": score.value,
                "date": record.provenance.created,
                "notes": f"{score.metric} x 100, as mteb {score.detail.get('mteb_version')} scores it",
            }
        )
    if not entries:
        raise BenchError(
            f"{record.run_id} has no score on a data set of the hub",
            "bench run ... --suite mteb, or --format every-eval-ever",
        )
    return entries


# --- https://github.com/evaleval/every_eval_ever ---


def every_eval_ever(run: Run) -> dict[str, Any]:
    """All scores with their intervals over items, by schema 0.3.0. The same record gives the same bytes."""
    record = run.record
    created = record.provenance.created
    spreads = {
        (t.suite, task, t.protocol, t.text): cell.spread for t, task, cell in scored_cells(run)
    }
    seconds = str(int(datetime.fromisoformat(created).timestamp()))
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"bench/{record.run_id}/{seconds}",
        "evaluation_timestamp": created,
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_name": "bench",
            "source_type": "evaluation_run",
            "source_organization_name": "not stated",
            "evaluator_relationship": "other",
            "additional_details": {"fingerprint": record.fingerprint},
        },
        "eval_library": {
            "name": "sentence-bench",
            "version": record.provenance.bench_version or "unknown",
        },
        "model_info": {
            "name": record.label,
            "id": record.evaluated_as or f"bench/{record.run_id}",
            "additional_details": {
                "deployment_type": "self_deployed",
                "model_availability": "unknown",
                "backbone": record.backbone_name,
                "setting": record.setting,
                "seed": str(record.seed),
            },
        },
        "evaluation_results": [
            _result(score, record, spreads.get(score.key)) for score in record.scores
        ],
    }


def _result(score: Score, record: RunRecord, spread: Spread | None) -> dict[str, Any]:
    metric = find_metric(score.suite, score.metric)
    low, high = (end if math.isfinite(end) else None for end in metric.bounds)
    key = data_key(score.task, score.text, score.suite)
    facts = {
        "protocol": score.protocol,
        "text": score.text,
        "sha256 of the data": record.provenance.data.get(key),
    }
    uncertainty: dict[str, Any] = {"num_samples": score.n}
    if spread is not None:
        uncertainty["standard_error"] = {"value": spread.se}
        uncertainty["confidence_interval"] = {
            "lower": spread.low,
            "upper": spread.high,
            "confidence_level": spread.level,
            "method": f"over {spread.covers}",
        }
    return {
        "evaluation_name": f"{score.suite} {score.task}",
        "source_data": {
            "dataset_name": score.task,
            "source_type": "other",
            "additional_details": {key: value for key, value in facts.items() if value},
        },
        "metric_config": {
            "evaluation_description": f"{score.metric}, on the scale that papers print",
            "lower_is_better": not metric.higher_is_better,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
        },
        "score_details": {"score": score.value, "uncertainty": uncertainty},
    }


@dataclass(frozen=True)
class Exported:
    """What was written: of which run, and the largest difference from the method's own vectors, relative to their size."""

    form: str
    run_id: str
    difference: float
    dimensions: int
    module_files: tuple[str, ...] = ()  # source files in it; who loads the folder has to allow them


# --- a sentence-transformers folder for mteb: mteb.ResultCache(DIR).load_results(include_remote=False) reads its results ---


FILE = "mteb_model.py"
SOURCE = '''"""The model of this folder for mteb.  python {file} STS12 STSBenchmark   evaluates it on tasks, or:

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


def loader(model_name: str, revision: str | None = None, device: str | None = None, **kwargs: Any) -> Any:
    kwargs.pop("embed_dim", None)
    return SentenceTransformerEncoderWrapper(str(FOLDER), device=device, trust_remote_code={trust}, **kwargs)


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
    lines = [f"    {key}={value}," for key, value in facts(run, exported, folder).items()]
    text = SOURCE.format(file=FILE, trust=bool(exported.module_files), facts="\n".join(lines))
    (folder / FILE).write_text(text, encoding="utf-8")


def facts(run: TrainedRun, exported: Exported, folder: Path) -> dict[str, str]:
    """ModelMeta's fields as Python source. What a run does not know is None, never a guess."""
    record = run.record
    settings = folder / "sentence_bert_config.json"
    values: dict[str, Any] = {
        "name": f"bench/{record.run_id}",
        "revision": record.fingerprint[:16],
        "languages": None,
        "n_parameters": record.cost.total_parameters,
        "n_embedding_parameters": None,
        "memory_usage_mb": round(
            sum(file.stat().st_size for file in folder.rglob("*.safetensors")) / 2**20, 1
        ),
        "max_tokens": read_json(settings).get("max_seq_length") if settings.is_file() else None,
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
    day = ", ".join(str(int(part)) for part in record.provenance.created[:10].split("-"))
    return {key: repr(value) for key, value in values.items()} | {
        "release_date": f"date({day}).isoformat()"
    }


def hub_backbone(record: RunRecord) -> str | None:
    """The backbone, where it is a model of the hub."""
    revision = record.provenance.backbone.revision or ""
    return record.backbone if len(revision) == 40 and not Path(record.backbone).exists() else None


def write_mteb_results(record: RunRecord, run_folder: Path, to: Path) -> list[Path]:
    """Write ``to/results/<model>/<revision>/<task>.json`` and return these files, in the order of the record's scores.

    Tasks of the suite mteb are the files that mteb wrote when it scored them. Tasks of our own suites have the names and
    metrics that they have as mteb tasks (``bench.score.suites.mteb_tasks``: "bench-STS12", "bench_spearman"), for mteb's own STS12
    is another protocol. Averages are left out: they are no tasks. Raises DataMissing where a file that mteb wrote is gone.
    """
    import mteb

    from bench.score.suites.mteb import MtebEncoder
    from bench.score.suites.mteb_data import quiet_mteb

    def no_vectors(sentences: Any) -> Any:
        raise NotImplementedError

    with quiet_mteb():
        encoder = MtebEncoder(f"bench/{record.run_id}", record.fingerprint[:16], vectors=no_vectors)
        meta, cache, written = encoder.mteb_model_meta, mteb.ResultCache(to), list[Path]()
        for score in record.scores:
            if score.suite == "mteb" and score.task != AVERAGE:
                written.append(_theirs(record, score, run_folder, to))
            elif score.task != AVERAGE and (result := _ours(record, score)) is not None:
                cache.save_to_cache(result, meta)
                written.append(cache.get_task_result_path(result.task_name, meta))
    return written


def _theirs(record: RunRecord, score: Score, run_folder: Path, to: Path) -> Path:
    """Copy the file that mteb wrote, and what lies beside it: about the model, and how mteb was called."""
    paths = foreign_files(score, run_folder)
    file = next((p for p in paths if p.name == f"{score.task}.json" and p.is_file()), None)
    if file is None:
        raise DataMissing(
            f"{record.run_id}: the result file that mteb wrote for {score.task} is missing from {run_folder}",
            AGAIN,
        )
    target = to / file.relative_to(run_folder / "mteb")
    target.parent.mkdir(parents=True, exist_ok=True)
    for name in (file.name, "model_meta.json", "run_settings.jsonl"):
        if file.with_name(name).is_file():
            shutil.copyfile(file.with_name(name), target.with_name(name))
    return target


def _ours(record: RunRecord, score: Score) -> Any:
    """None for a task or protocol that no longer exists."""
    import mteb
    from mteb.results import TaskResult

    from bench.score.suites import find_task
    from bench.score.suites.mteb_tasks import metadata_of, scores_of

    task = find_task(score.key)
    if task is None:
        return None
    revision = record.provenance.data.get(data_key(score.task, score.text, score.suite), "unknown")
    metadata = metadata_of(task, SimpleNamespace(form=score.text, sha256=revision))  # type: ignore[arg-type]
    scores: Any = {
        **scores_of(score),  # type: ignore[arg-type]
        "hf_subset": "default",
        "languages": list(metadata.eval_langs),
    }
    scores["main_score"] = scores[metadata.main_score]
    return TaskResult(
        dataset_revision=str(revision),
        task_name=metadata.name,
        mteb_version=mteb.__version__,
        scores={"test": [scores]},
        evaluation_time=None,
        date=datetime.fromisoformat(record.provenance.created),
    )
