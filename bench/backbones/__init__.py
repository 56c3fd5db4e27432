"""A name -> tokenizer + encoder + revision. A name is ``builtin``, a folder, or a model of the Hugging Face hub.

:func:`resolve` says what a name means without importing torch (the plan and the fingerprint need no more);
:func:`load` makes the encoder.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backbones import families
from bench.backbones import hub as models_of_hub
from bench.backbones.folder import (
    PICKLES,
    VOCABULARIES,
    WEIGHTS,
    card_title,
    check_folder,
    checkpoint_names,
    convert_pickles,
    has_pickle,
    take_trained,
    tensor_names,
    transformer_folder,
    weights_hash,
)
from bench.base.errors import BenchError, NotAModel, UnknownName, one_line
from bench.data.fetching import offline_now

if TYPE_CHECKING:
    from bench.backbones.model import Backbone

KNOWN = {
    "builtin": "a small BERT that this project pretrained itself; comes with the package",
    "bert-base-uncased": "BERT base, 110 M parameters (Devlin et al. 2019)",
    "bert-large-uncased": "BERT large, 335 M parameters (Devlin et al. 2019)",
    "roberta-base": "RoBERTa base, 125 M parameters (Liu et al. 2019)",
    "roberta-large": "RoBERTa large, 355 M parameters (Liu et al. 2019)",
}
SHAPES: Mapping[str, Mapping[str, int]] = {
    name: dict(
        zip(
            (
                "num_hidden_layers",
                "hidden_size",
                "intermediate_size",
                "vocab_size",
                "max_position_embeddings",
            ),
            sizes,
            strict=True,
        )
    )
    for name, sizes in {
        "bert-base-uncased": (12, 768, 3072, 30522, 512),
        "bert-large-uncased": (24, 1024, 4096, 30522, 512),
        "roberta-base": (12, 768, 3072, 50265, 514),
        "roberta-large": (24, 1024, 4096, 50265, 514),
    }.items()
}
"""What the configs of these models say, for plans on a machine that does not have them."""


@dataclass(frozen=True)
class Reference:
    """What a backbone name means. ``path`` is None where the files are not on this machine yet."""

    name: str
    revision: str  # a hub commit, or the sha256 of the weights of a folder; "unknown" where not on this machine
    path: Path | None
    hub: bool = False
    trained: Path | None = (
        None  # the checkpoint of a run that fine-tuned it: its encoder weights replace the pretrained ones
    )
    title: str = ""  # what tables call it, where that is not its name: as its model card says, or NAME=FOLDER
    source: str | None = (
        None  # what to ask the hub for, where it is not ``name``: the base of a run, the revision of a record
    )

    @property
    def model(self) -> str:
        """The name without a revision: what recipes are written for."""
        return models_of_hub.split(self.name)[0] if self.hub else self.name

    @property
    def short(self) -> str:
        """The part of the name that stands in a run's id."""
        name = Path(self.name).name or "model"
        return "".join(c if c.isalnum() or c in "._-" else "-" for c in name)[:60]

    def config(self) -> dict[str, Any]:
        """The model's config with BERT's names for its sizes; empty where the files are not here yet."""
        return families.read_config(transformer_folder(self.path)) if self.path is not None else {}

    def sizes(self) -> Mapping[str, Any]:
        """As ``config``; of a well-known model that is not here yet its sizes alone."""
        return self.config() or SHAPES.get(self.model.rpartition("/")[2], {})


def builtin_folder() -> Path:
    return Path(str(files("bench.builtin") / "backbone"))


def resolve(name: str, *, allow_pickle: bool = False) -> Reference:
    """What ``name`` means on this machine; of a hub name, ``owner/name@revision`` names the commit.

    ``allow_pickle``: a folder whose weights are a pickle is converted now; once it was, nobody need ask again.
    Raises NotAModel for a folder without a model, UnknownName for no name at all.
    """
    if name == "builtin":
        return Reference("builtin", weights_hash(builtin_folder()), builtin_folder())
    path = Path(name).expanduser()
    if name and (path / "run.json").is_file():
        return run_folder(path)
    if name and path.is_dir():
        folder = _as_safetensors(path, allow_pickle)
        check_folder(folder)
        return Reference(name, weights_hash(folder), folder, title=card_title(path))
    if path.is_file() or name.startswith((".", "/", "~")) or name.partition("@")[0].count("/") > 1:
        raise NotAModel(
            f"--backbone {name}: no such folder",
            "give a folder with config.json and model.safetensors, a hub name, or builtin",
        )
    if (
        not name
        or not all(c.isalnum() or c in "._-/@" for c in name)
        or name.count("@") > 1
        or name[0] == "@"
        or name[-1] == "@"
    ):
        raise UnknownName("backbone", name, KNOWN)
    cached = models_of_hub.in_cache(name)
    if cached is not None:
        return Reference(name, cached.name, cached, hub=True)
    pickled = models_of_hub.in_cache(name, PICKLES)
    twin = convert_pickles(transformer_folder(pickled), make=allow_pickle) if pickled else None
    return Reference(name, pickled.name if pickled and twin else "unknown", twin, hub=True)


def resolve_recorded(name: str, revision: str | None) -> Reference:
    """The backbone that a record names: of a hub model the very revision, whichever is the newest by now."""
    newest = resolve(name)
    if newest.hub and revision not in (None, "unknown", newest.revision):
        source = f"{newest.model}@{revision}"
        return replace(resolve(source), name=name, source=source)
    return newest


def _as_safetensors(path: Path, allow_pickle: bool) -> Path:
    """The folder, or its converted twin where its weights are a pickle and that is allowed or was done already."""
    inner = transformer_folder(path)
    if (
        not (inner / "config.json").exists()
        or any((inner / name).exists() for name in WEIGHTS)
        or not has_pickle(inner)
    ):
        return path
    return convert_pickles(inner, make=allow_pickle) or path


def check_mlm_head(path: Path | None) -> None:
    """Raises NotAModel where the checkpoint in a folder carries no masked-language-modelling head. None: it is not here yet."""
    if path is not None:
        families.check_mlm_head(transformer_folder(path))


def run_folder(path: Path) -> Reference:
    """The encoder that a run fine-tuned, as a backbone. Raises NotAModel where the run trained none, or is not finished."""
    try:
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        backbone, status = record["provenance"]["backbone"], record["status"]
        revision = backbone["revision"]
        base = resolve_recorded(backbone["name"], revision)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAModel(f"{path} is no run: run.json is damaged ({error})") from None
    trained = path / "checkpoint" / "trained.safetensors"
    if status != "finished" or not trained.is_file():
        raise NotAModel(
            f"{path} is a run without a finished checkpoint (status {status})",
            f"run its command again, with --fresh where it had finished; of a run that trained nothing: --backbone {base.name}",
        )
    if not any(name.startswith("encoder.") for name in tensor_names(trained)):
        raise NotAModel(
            f"{path} trained no encoder, only what stands beside a frozen one",
            "a prompt method's run is no backbone; take one that fine-tuned all of it",
        )
    if base.path is not None and base.revision != revision:
        raise NotAModel(
            f"{path} was trained on {base.name} revision {revision[:12]}; here it is {base.revision[:12]}",
            "the run's own backbone is needed beside its checkpoint",
        )
    digest = hashlib.sha256(f"{revision}\0".encode() + trained.read_bytes()).hexdigest()
    return Reference(str(path), digest, base.path, base.hub, trained, base.source or base.name)


def fetch(
    reference: Reference,
    *,
    offline: bool,
    allow_pickle: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Reference:
    """The reference with its files on this machine; ``say`` is told, in one line, what is fetched.

    Raises NotAModel where they cannot be had.
    """
    if reference.path is not None:
        return reference
    name = reference.source or reference.name
    near = _nearest(models_of_hub.split(name)[0])
    if offline or offline_now():
        reason = "--offline" if offline else "HF_HUB_OFFLINE"
        raise NotAModel(
            f"backbone '{name}' is not on this machine and {reason} forbids fetching it",
            near + models_of_hub.bring_over(name),
        )
    snapshot = models_of_hub.download(name, allow_pickle=allow_pickle, near=near, say=say)
    path = _as_safetensors(snapshot, allow_pickle)
    check_folder(path)
    return replace(
        reference,
        revision=reference.revision if reference.trained else snapshot.name,
        path=path,
        hub=True,
    )


def _nearest(name: str) -> str:
    near = [] if name in KNOWN else difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.8)
    return f"did you mean {near[0]}? else " if near else ""


def load(
    reference: Reference,
    *,
    dropout: float | None = None,
    offline: bool = False,
    dtype: str = "fp32",
    reads: tuple[str, ...] = (),
) -> Backbone:
    """Encoder and tokenizer on the CPU. ``dropout`` replaces the config's hidden and attention dropout; ``dtype``: fp32, bf16 or fp16;
    ``reads``: how the names of tensors begin that are no part of the encoder, and that the caller reads.

    Raises NotAModel where the folder cannot be read as a transformers encoder, has weights missing, or has weights that would be
    left out although they change what the encoder computes.
    """
    import transformers

    from bench.backbones.model import Backbone

    reference = fetch(reference, offline=offline)
    assert reference.path is not None
    folder = transformer_folder(reference.path)
    quiet()
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if dropout is not None:
            for key in families.DROPOUTS:
                if hasattr(config, key):
                    setattr(config, key, dropout)
        if not any(
            (folder / name).exists() for name in VOCABULARIES
        ):  # transformers would make up an empty one
            raise NotAModel(
                f"{reference.name} has no tokenizer: none of {', '.join(VOCABULARIES)} is there",
                "save the tokenizer into the folder",
            )
        _check_sentencepiece(reference.name, folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        encoder, missing, unused = _encoder(folder, config, dtype)
    except BenchError:
        raise
    except Exception as error:  # transformers raises many kinds for a damaged folder
        if "trust_remote_code" in str(error):
            raise NotAModel(
                f"{reference.name} needs code from its own repository, which bench does not run",
                "load it in Python and score the object: bench.evaluate(model, ...), docs/evaluate.md",
            ) from None
        raise NotAModel(
            f"{reference.name} cannot be loaded as an encoder: {one_line(error)}"
        ) from None
    if len(tokenizer) > getattr(config, "vocab_size", len(tokenizer)):
        raise NotAModel(
            f"{reference.name}: its tokenizer knows {len(tokenizer)} tokens, its encoder {config.vocab_size}",
            "the tokenizer belongs to another model",
        )
    missing = [name for name in missing if "pooler" not in name and "position_ids" not in name]
    if missing:
        raise NotAModel(
            f"{reference.name} lacks {len(missing)} weights of its encoder, the first is {missing[0]}",
            "the file is damaged, or its weights are for another architecture",
        )
    _check_unused(reference.name, folder, config.model_type, families.not_read(unused, reads))
    if reference.trained is not None:
        take_trained(encoder, reference.trained)
    return Backbone(
        reference.name,
        reference.revision,
        config.model_type,
        encoder,
        tokenizer,
        reference.path,
        folder,
        reference.trained,
        unused,
    )


def _check_sentencepiece(name: str, folder: Path) -> None:
    """Raises NotAModel where the only vocabulary is a SentencePiece model (DeBERTa-v3), and no library reads it."""
    here = [vocabulary for vocabulary in VOCABULARIES if (folder / vocabulary).exists()]
    if all(vocabulary.endswith(".model") for vocabulary in here):
        lacking = [name for name in SENTENCEPIECE if not any(distributions(name=name))]
        if lacking:
            raise NotAModel(
                f"{name} has a SentencePiece vocabulary ({here[0]}), which needs {' and '.join(lacking)}",
                "pip install 'sentence-bench[sentencepiece]'",
            )


SENTENCEPIECE = ("sentencepiece", "protobuf")
"""What transformers needs to read a SentencePiece vocabulary."""
PREFIX = "prefix_encoder."
"""How PromCSE's and DCPCSE's class calls the prompt that its checkpoints hold beside the encoder."""
MOST_NAMES = 3


def _check_unused(name: str, folder: Path, model_type: str, strange: list[str]) -> None:
    """Raises NotAModel for tensors that a checkpoint holds and nothing reads."""
    if not strange:
        return
    shown = ", ".join(strange[:MOST_NAMES]) + (
        f" and {len(strange) - MOST_NAMES} more" if len(strange) > MOST_NAMES else ""
    )
    file = next(folder / weights for weights in WEIGHTS if (folder / weights).exists())
    if any(tensor.startswith(PREFIX) for tensor in strange):
        hint = f"a PromCSE or DCPCSE checkpoint: bench run --method stored-prefix --backbone {name}"
    else:
        hint = "take the config.json that belongs to these weights, or save the file without these tensors if no score needs them"
    raise NotAModel(
        f"{file} holds tensors that a {families.title(model_type)} encoder does not read: {shown}",
        hint,
    )


def check_stored_prefix(reference: Reference, reads: tuple[str, ...]) -> None:
    """Raises NotAModel, before anything is started, for a checkpoint with a prefix that a method would leave out."""
    if reference.path is None or PREFIX in reads:
        return
    folder, stored = transformer_folder(reference.path), list[str]()
    with contextlib.suppress(NotAModel):  # of a damaged file, which load names
        stored = [name for name in checkpoint_names(folder) if name.startswith(PREFIX)]
    _check_unused(reference.name, folder, str(reference.config().get("model_type", "")), stored)


def load_backbone(name: str, *, offline: bool = False) -> Backbone:
    """Another pretrained encoder for a method that needs two: by hub name, folder or run folder. Raises as :func:`load`."""
    return load(resolve(name), offline=offline)


def quiet() -> None:
    """No progress bars and no advice from transformers: the harness says itself what it does."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _encoder(folder: Path, config: Any, dtype: str) -> tuple[Any, list[str], tuple[str, ...]]:
    import torch
    import transformers

    number = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
    options: dict[str, Any] = {
        "config": config,
        "dtype": number,
        "output_loading_info": True,
        "trust_remote_code": False,
    }
    try:
        encoder, info = transformers.AutoModel.from_pretrained(
            folder, add_pooling_layer=False, **options
        )
    except TypeError:  # families without a pooling layer do not know the argument
        encoder, info = transformers.AutoModel.from_pretrained(folder, **options)
    return encoder.eval(), sorted(info["missing_keys"]), tuple(sorted(info["unexpected_keys"]))
