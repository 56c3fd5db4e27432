"""A sentence-transformers folder with ``mteb_model.py``: what mteb wants to know of a model, and how it is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.method import read_json

if TYPE_CHECKING:
    from bench.export import Exported
    from bench.run.trained_run import TrainedRun

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


def write(run: TrainedRun, exported: Exported, folder: Path) -> None:
    lines = [f"    {key}={value}," for key, value in facts(run, exported, folder).items()]
    text = SOURCE.format(file=FILE, trust=bool(exported.module_files), facts="\n".join(lines))
    (folder / FILE).write_text(text, encoding="utf-8")


def facts(run: TrainedRun, exported: Exported, folder: Path) -> dict[str, str]:
    """ModelMeta's fields as Python source. What a run does not know is None, never a guess."""
    record = run.record
    settings = folder / "sentence_bert_config.json"
    limit = read_json(settings).get("max_seq_length") if settings.is_file() else None
    created = record.provenance.created
    parameters = record.cost.total_parameters
    weights = sum(file.stat().st_size for file in folder.rglob("*.safetensors"))
    values: dict[str, Any] = {
        "name": f"bench/{record.run_id}", "revision": record.fingerprint[:16], "languages": None, "n_parameters": parameters,
        "n_embedding_parameters": None, "memory_usage_mb": round(weights / 2**20, 1), "max_tokens": limit,
        "embed_dim": exported.dimensions, "license": None, "open_weights": True, "public_training_code": None,
        "public_training_data": None, "framework": ["Sentence Transformers", "PyTorch", "safetensors"], "reference": None,
        "similarity_fn_name": "cosine", "use_instructions": False, "training_datasets": None, "adapted_from": adapted(record),
        "superseded_by": None, "citation": run.plugin.cls.paper or None, "contacts": None, "modalities": ["text"],
    }  # fmt: skip
    day = ", ".join(str(int(part)) for part in created[:10].split("-"))
    return {key: repr(value) for key, value in values.items()} | {"release_date": f"date({day}).isoformat()"}


def adapted(record: Any) -> str | None:
    """The backbone, where it is a model of the hub."""
    name = record.backbone
    known = (record.provenance.backbone or {}).get("revision") or ""
    return name if len(known) == 40 and not Path(name).exists() else None
