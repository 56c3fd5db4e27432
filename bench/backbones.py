"""A name -> tokenizer + encoder + revision. A name is ``builtin``, a folder, or a model of the Hugging Face hub.

:func:`resolve` says what a name means without importing torch (the plan and the fingerprint need no more);
:func:`load` makes the encoder.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import BenchError, NotAModel, UnknownName
from bench.weights import checkpoint_names, take_trained, tensor_names

if TYPE_CHECKING:
    from bench.backbone_model import Backbone

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
KNOWN = {
    "builtin": "a small BERT that this project pretrained itself; comes with the package",
    "bert-base-uncased": "BERT base, 110 M parameters (Devlin et al. 2019)",
    "bert-large-uncased": "BERT large, 335 M parameters (Devlin et al. 2019)",
    "roberta-base": "RoBERTa base, 125 M parameters (Liu et al. 2019)",
    "roberta-large": "RoBERTa large, 355 M parameters (Liu et al. 2019)",
}
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
DETERMINES = {".json", ".txt", ".model", ".safetensors"}  # files of a model folder that decide what it computes ...
ABOUT = {
    "card.json",
    "trainer_state.json",
    "all_results.json",
    "train_results.json",
    "eval_results.json",
    "README.txt",
}  # ... and not
FILES = ["*.json", "*.txt", "*.safetensors", "*.model", "merges.txt", "vocab.*"]  # what is fetched: never pickles


@dataclass(frozen=True)
class Reference:
    """What a backbone name means. ``path`` is None where the files are not on this machine yet."""

    name: str
    revision: str  # a hub commit, or the sha256 of the weights of a folder; "unknown" where not on this machine
    path: Path | None
    hub: bool = False
    trained: Path | None = None  # the checkpoint of a run that fine-tuned it: its encoder weights replace the pretrained ones

    @property
    def short(self) -> str:
        """The part of the name that stands in a run's id."""
        name = Path(self.name).name or "model"
        return "".join(c if c.isalnum() or c in "._-" else "-" for c in name)[:60]

    def config(self) -> dict[str, Any]:
        if self.path is None:
            return {}
        config: dict[str, Any] = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        return config


def builtin_folder() -> Path:
    return Path(str(files("bench.builtin") / "backbone"))


def resolve(name: str) -> Reference:
    """What ``name`` means on this machine. Raises NotAModel for a folder without a model, UnknownName for no name at all."""
    if name == "builtin":
        return Reference("builtin", weights_hash(builtin_folder()), builtin_folder())
    path = Path(name).expanduser()
    if name and (path / "run.json").is_file():
        return run_folder(path)
    if name and path.is_dir():
        check_folder(path)
        return Reference(name, weights_hash(path), path)
    if path.is_file() or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise NotAModel(
            f"--backbone {name}: no such folder", "give a folder with config.json and model.safetensors, a hub name, or builtin"
        )
    if not name or not all(c.isalnum() or c in "._-/" for c in name):
        raise UnknownName("backbone", name, KNOWN)
    cached = _in_hub_cache(name)
    if cached is not None:
        return Reference(name, cached.name, cached, hub=True)
    return Reference(name, "unknown", None, hub=True)


def check_mlm_head(path: Path | None) -> None:
    """Raises NotAModel where the checkpoint in a folder carries no masked-language-modelling head. None: it is not here yet."""
    if path is None:
        return
    folder = transformer_folder(path)
    if not any(name.startswith(("cls.predictions.", "lm_head.")) for name in checkpoint_names(folder)):
        raise NotAModel(f"{path} carries no MLM head, which this needs", "take a pretrained BERT or RoBERTa, or builtin")


def run_folder(path: Path) -> Reference:
    """The encoder that a run fine-tuned, as a backbone. Raises NotAModel where the run trained none, or is not finished."""
    try:
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        base = resolve(record["provenance"]["backbone"]["name"])
        revision, status = record["provenance"]["backbone"]["revision"], record["status"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotAModel(f"{path} is no run: run.json is damaged ({error})") from None
    trained = path / "checkpoint" / "trained.safetensors"
    if status != "finished" or not trained.is_file():
        raise NotAModel(f"{path} is a run without a finished checkpoint (status {status})", "run its command again")
    if not any(name.startswith("encoder.") for name in tensor_names(trained)):
        raise NotAModel(
            f"{path} trained no encoder, only what stands beside a frozen one",
            "a prompt method's run is no backbone; take one that fine-tuned all of it",
        )
    if base.revision != revision:
        raise NotAModel(
            f"{path} was trained on {base.name} revision {revision[:12]}; here it is {base.revision[:12]}",
            "the run's own backbone is needed beside its checkpoint",
        )
    digest = hashlib.sha256(f"{revision}\0".encode() + trained.read_bytes()).hexdigest()
    return Reference(str(path), digest, base.path, base.hub, trained)


def check_folder(path: Path) -> None:
    folder = transformer_folder(path)
    if not (folder / "config.json").exists():
        raise NotAModel(f"{path} is no model folder: it has no config.json", "give a folder that save_pretrained wrote")
    if not any((folder / name).exists() for name in WEIGHTS):
        pickled = " (pytorch_model.bin is a pickle, which is never loaded)" if (folder / "pytorch_model.bin").exists() else ""
        raise NotAModel(f"{path} has no model.safetensors{pickled}", "save the model again with safe_serialization=True")


def transformer_folder(path: Path) -> Path:
    """The folder of the transformer inside a sentence-transformers folder; the folder itself for any other."""
    modules = path / "modules.json"
    if modules.exists():
        try:
            first = json.loads(modules.read_text(encoding="utf-8"))[0]["path"]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise NotAModel(f"{modules} is damaged: {error}") from None
        return path / first
    return path


@cache
def weights_hash(path: Path) -> str:
    """sha256 over weights, configs and tokenizer: what names the revision of a local folder.

    Of a sentence-transformers folder also what its modules say about pooling, normalisation and length.
    """
    digest = hashlib.sha256()
    for file in sorted(file for folder in _parts(path) for file in folder.iterdir() if file.suffix in DETERMINES):
        if file.name in ABOUT or not file.is_file():
            continue
        digest.update(f"{file.relative_to(path)}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 22):
                digest.update(chunk)
    return digest.hexdigest()


def _parts(path: Path) -> set[Path]:
    """The folder, and those of its modules if it is a sentence-transformers folder."""
    file = path / "modules.json"
    try:
        modules = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
        return {folder for folder in (path, *(path / module["path"] for module in modules)) if folder.is_dir()}
    except (ValueError, KeyError, TypeError) as error:
        raise NotAModel(f"{file} is damaged: {error}") from None


def _in_hub_cache(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for repo in _hub_names(name):
        found = try_to_load_from_cache(repo, "config.json")
        if isinstance(found, str) and any((Path(found).parent / weights).exists() for weights in WEIGHTS):
            return Path(found).parent
    return None


def _hub_names(name: str) -> list[str]:
    canonical = {"bert-base-uncased": "google-bert", "bert-large-uncased": "google-bert",
                 "roberta-base": "FacebookAI", "roberta-large": "FacebookAI"}  # fmt: skip
    return [f"{canonical[name]}/{name}", name] if name in canonical else [name]


def fetch(reference: Reference, *, offline: bool) -> Reference:
    """The reference with its files on this machine. Raises NotAModel where they cannot be had."""
    if reference.path is not None:
        return reference
    if offline or os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        raise NotAModel(f"backbone '{reference.name}' is not on this machine and --offline forbids fetching it",
                        _nearest(reference.name) + "run once with a network, give a folder, or --backbone builtin")  # fmt: skip
    from huggingface_hub import snapshot_download

    repo = _hub_names(reference.name)[0]
    try:
        path = Path(snapshot_download(repo, allow_patterns=FILES, ignore_patterns=["onnx/*", "openvino/*"]))
    except Exception as error:  # the hub client raises many kinds
        reason = " ".join(str(error).split())[:160]
        hint = _nearest(reference.name) + "check the name and the network, give a folder, or --backbone builtin"
        raise NotAModel(f"backbone '{reference.name}' could not be fetched from the hub: {reason}", hint) from None
    check_folder(path)
    return replace(reference, revision=reference.revision if reference.trained else path.name, path=path, hub=True)


def _nearest(name: str) -> str:
    near = [] if name in KNOWN else difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.8)
    return f"did you mean {near[0]}? else " if near else ""


def load(reference: Reference, *, dropout: float | None = None, offline: bool = False) -> Backbone:
    """Encoder and tokenizer, float32, on the CPU. ``dropout`` replaces the config's hidden and attention dropout.

    Raises NotAModel where the folder cannot be read as a transformers encoder, or has weights missing.
    """
    import transformers

    from bench.backbone_model import Backbone

    reference = fetch(reference, offline=offline)
    assert reference.path is not None
    folder = transformer_folder(reference.path)
    quiet()
    try:
        config = transformers.AutoConfig.from_pretrained(folder)
        if dropout is not None:
            for key in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
                if hasattr(config, key):
                    setattr(config, key, dropout)
        if not any((folder / name).exists() for name in VOCABULARIES):  # transformers would make up an empty one
            raise NotAModel(
                f"{reference.name} has no tokenizer: none of {', '.join(VOCABULARIES)} is there",
                "save the tokenizer into the folder",
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        encoder, missing = _encoder(folder, config)
    except BenchError:
        raise
    except Exception as error:  # transformers raises many kinds for a damaged folder
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise NotAModel(f"{reference.name} cannot be loaded as an encoder: {reason}") from None
    if len(tokenizer) > getattr(config, "vocab_size", len(tokenizer)):
        raise NotAModel(f"{reference.name}: its tokenizer knows {len(tokenizer)} tokens, its encoder {config.vocab_size}",
                        "the tokenizer belongs to another model")  # fmt: skip
    missing = [name for name in missing if "pooler" not in name and "position_ids" not in name]
    if missing:
        raise NotAModel(f"{reference.name} lacks {len(missing)} weights of its encoder, the first is {missing[0]}",
                        "the file is damaged, or its weights are for another architecture")  # fmt: skip
    if reference.trained is not None:
        take_trained(encoder, reference.trained)
    return Backbone(reference.name, reference.revision, config.model_type, encoder, tokenizer, reference.path, folder)


def load_backbone(name: str, *, offline: bool = False) -> Backbone:
    """Another pretrained encoder for a method that needs two: by hub name, folder or run folder. Raises as :func:`load`."""
    return load(resolve(name), offline=offline)


def quiet() -> None:
    """No progress bars and no advice from transformers: the harness says itself what it does."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _encoder(folder: Path, config: Any) -> tuple[Any, list[str]]:
    import torch
    import transformers

    options: dict[str, Any] = {"config": config, "dtype": torch.float32, "output_loading_info": True}
    try:
        encoder, info = transformers.AutoModel.from_pretrained(folder, add_pooling_layer=False, **options)
    except TypeError:  # families without a pooling layer do not know the argument
        encoder, info = transformers.AutoModel.from_pretrained(folder, **options)
    return encoder.eval(), sorted(info["missing_keys"])
