"""A name -> tokenizer + encoder + revision. A name is ``builtin``, a folder, or a model of the Hugging Face hub.

:func:`resolve` says what a name means without importing torch (the plan and the fingerprint need no more);
:func:`load` makes the encoder.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import distributions
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backbones.dropout import check_dropout_arrived, set_dropout
from bench.backbones.folder import (
    BUFFERS,
    PICKLES,
    VOCABULARIES,
    WEIGHTS,
    card_title,
    checkpoint_names,
    convert_pickles,
    has_transformer,
    is_whole,
    read_config,
    read_transformer_config,
    readable_model,
    take_trained,
    tensor_names,
    title,
    transformer_folder,
    weights_hash,
    without_base,
)
from bench.backbones.heads import is_head
from bench.backbones.load_failures import damaged_weights, explain_failure
from bench.backbones.module_pickles import ALLOW, convert_modules, pickled_modules
from bench.backbones.refusals import check_no_own_code, module_types
from bench.backbones.sizes import check_sizes
from bench.backbones.snapshot import fetch_snapshot
from bench.backbones.tokenizer import read_tokenizer
from bench.base.errors import DataDamaged, FetchFailed, NotAModel, UnknownName
from bench.base.paths import find_path
from bench.base.places import recall_place
from bench.base.reading import RECORD_BYTES, is_plain_file, open_plain_file, read_plain_file
from bench.data.fetching import offline_now, repository_info, site
from bench.data.sets import ON_ITS_PAGE, Pending

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
    name: {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": 4 * hidden,
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
    }
    for name, (layers, hidden, vocabulary, positions) in {
        "bert-base-uncased": (12, 768, 30522, 512),
        "bert-large-uncased": (24, 1024, 30522, 512),
        "roberta-base": (12, 768, 50265, 514),
        "roberta-large": (24, 1024, 50265, 514),
    }.items()
}
"""The sizes in the configs of these models, for plans on a machine that does not have them."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The meaning of a backbone's name on this machine."""

    name: str
    # a hub commit, or the sha256 of the weights of a folder; "unknown" if the files are not on this machine
    revision: str
    # the folder; None if the files are not on this machine yet
    path: Path | None
    hub: bool = False
    # the checkpoint of the run that fine-tuned it, which replaces the weights
    trained: Path | None = None
    # its name in tables, if that is another one: from its model card, or NAME=FOLDER
    title: str = ""
    # the name under which the hub has its files, if that is another one: a run's base, a record's revision
    source: str | None = None

    @property
    def model(self) -> str:
        """The name without a revision: what recipes are written for."""
        return split(self.name)[0] if self.hub else self.name

    @property
    def short(self) -> str:
        """The part of the name in a run's id."""
        return "".join(
            c if c.isalnum() or c in "._-" else "-" for c in (Path(self.name).name or "model")
        )[:60]

    def config(self) -> dict[str, Any]:
        """The model's config with BERT's names for its sizes; empty if the files are not here yet, or without a transformer."""
        return {} if self.path is None else read_transformer_config(self.path)

    def sizes(self) -> Mapping[str, Any]:
        """The config; for a well-known model that is not here yet only its sizes."""
        return self.config() or SHAPES.get(self.model.rpartition("/")[2], {})


def builtin_folder() -> Path:
    return Path(str(files("bench.builtin") / "backbone"))


def resolve(name: str, *, allow_pickle: bool = False) -> Reference:
    """What ``name`` means on this machine; of a hub name, ``owner/name@revision`` names the commit.

    ``allow_pickle``: a folder whose weights are a pickle is converted now; once converted, it is not needed again.
    Raises NotAModel for a folder without a model, UnknownName for what cannot be a name.
    """
    if name == "builtin":
        folder = builtin_folder()
        return Reference(name=name, revision=weights_hash(folder), path=folder)
    path = Path(name).expanduser()
    if name and (path / "run.json").is_file():
        return run_folder(path)
    if name and path.is_dir():
        folder = readable_model(path, allow_pickle=allow_pickle, name=name)
        folder = convert_modules(folder, allow_pickle=allow_pickle)
        return Reference(
            name=name, revision=weights_hash(folder), path=folder, title=card_title(path)
        )
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
    if cached := in_cache(name):
        check_no_own_code(transformer_folder(cached), name)
        commit = cached.name
        cached = convert_modules(cached, allow_pickle=allow_pickle)
        return Reference(name=name, revision=commit, path=cached, hub=True)
    pickled = in_cache(name, PICKLES)
    twin = convert_pickles(transformer_folder(pickled), make=allow_pickle) if pickled else None
    revision = pickled.name if pickled and twin else "unknown"
    return Reference(name=name, revision=revision, path=twin, hub=True)


def resolve_recorded(name: str, revision: str | None, runs: Path | None = None) -> Reference:
    """The backbone that a record names: of a hub model exactly that revision, not the newest; of a folder the one where this machine had
    it, as the runs folder ``runs`` knows, else the one of that name here."""
    is_named = find_path(name) is None  # records of an earlier bench hold absolute paths
    place = recall_place(runs, revision) if runs is not None and is_named else None
    if place is not None:
        return resolve(str(place))
    newest = resolve(name)
    if newest.hub and revision is not None and re.fullmatch("[0-9a-f]{64}", revision):
        raise NotAModel(
            f"the folder {name} (sha256 {revision[:12]}), which this run was made with, is not here",
            f"put it, or a link to it, into the working directory as {name}",
        )
    if newest.hub and revision not in (None, "unknown", newest.revision):
        source = f"{newest.model}@{revision}"
        return replace(resolve(source), name=name, source=source)
    return newest


def run_folder(path: Path) -> Reference:
    """The encoder that a run fine-tuned, as a backbone. Raises NotAModel where the run trained none, or is not finished."""
    try:
        record = json.loads(read_plain_file(path / "run.json", RECORD_BYTES))
        backbone, status = record["provenance"]["backbone"], record["status"]
        revision = backbone["revision"]
        base = resolve_recorded(backbone["name"], revision, path.absolute().parent)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotAModel(f"{path}: run.json is damaged ({error})", "give another run") from None
    trained = path / "checkpoint" / "trained.safetensors"
    if status != "finished" or not is_plain_file(trained):
        raise NotAModel(
            f"{path} is a run without a finished checkpoint (status {status})",
            f"run its command again, with --fresh if it had finished; if it trained nothing: --backbone {base.name}",
        )
    if not any(name.startswith("encoder.") for name in tensor_names(trained)):
        raise NotAModel(
            f"{path} did not train its encoder, only parameters added to a frozen one",
            "a prompt method's run cannot be a backbone; take a run that fine-tuned the whole encoder",
        )
    if base.path is not None and base.revision != revision:
        raise NotAModel(
            f"{path} was trained on {base.name} revision {revision[:12]}; here it is {base.revision[:12]}",
            "bring the revision that the run was trained on to this machine",
        )
    digest = hashlib.sha256(f"{revision}\0".encode())
    with open_plain_file(trained, inside=path) as stream:
        hashlib.file_digest(stream, lambda: digest)
    return Reference(
        name=str(path),
        revision=digest.hexdigest(),
        path=base.path,
        hub=base.hub,
        trained=trained,
        source=base.source or base.name,
    )


def fetch(
    reference: Reference,
    *,
    offline: bool,
    allow_pickle: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Reference:
    """The reference with its files on this machine; ``say`` gets one line about what is fetched. Raises NotAModel without them."""
    if reference.path is not None:
        return reference
    name = reference.source or reference.name
    model = split(name)[0]
    near = [] if model in KNOWN else difflib.get_close_matches(model, KNOWN, n=1, cutoff=0.8)
    hint = f"did you mean {near[0]}? else " if near else ""
    if offline or offline_now():
        from huggingface_hub.constants import HF_HUB_CACHE

        folder = "models--" + repositories(model)[0].replace("/", "--")
        raise NotAModel(
            f"backbone '{name}' is not on this machine and {'--offline' if offline else 'HF_HUB_OFFLINE'} forbids fetching it",
            f"{hint}where there is a network: bench doctor --backbone {name} --fetch; "
            f"then copy {folder} out of its hub cache to {HF_HUB_CACHE}",
        )
    snapshot = download(name, allow_pickle=allow_pickle, near=hint, say=say)
    readable = readable_model(snapshot, allow_pickle=allow_pickle, name=name)
    return replace(
        reference,
        revision=reference.revision if reference.trained else snapshot.name,
        path=convert_modules(readable, allow_pickle=allow_pickle),
        hub=True,
    )


def load(
    reference: Reference,
    *,
    dropout: float | None = None,
    offline: bool = False,
    dtype: str = "fp32",
    reads: tuple[str, ...] = (),
) -> Backbone:
    """Encoder and tokenizer on the CPU. ``dropout`` replaces every dropout of the encoder; ``dtype``: fp32, bf16 or fp16;
    ``reads``: how the names of tensors begin that are not part of the encoder, and that the caller reads.

    Raises NotAModel where the folder cannot be read as a transformers encoder, has weights missing, or has weights that would be
    left out although they change what the encoder computes, or if ``dropout`` does not arrive in all of the encoder.
    """
    import torch
    import transformers

    from bench.backbones.model import Backbone

    reference = fetch(reference, offline=offline)
    assert reference.path is not None
    name, folder = reference.name, transformer_folder(reference.path)
    if not has_transformer(reference.path):
        raise NotAModel(
            f"{name} has no transformer: its first module is {module_types(reference.path)[0]}",
            "bench evaluate scores it as it is; to train, or to pool it otherwise, give a transformers checkpoint",
        )
    vocabularies = [file for file in VOCABULARIES if (folder / file).exists()]
    if not vocabularies:  # transformers would make up an empty one
        raise NotAModel(
            f"{name} has no tokenizer: none of {', '.join(VOCABULARIES)} is there",
            "save the tokenizer into the folder",
        )
    missing = [library for library in SENTENCEPIECE if not any(distributions(name=library))]
    if missing and all(file.endswith(".model") for file in vocabularies):
        raise NotAModel(
            f"{name} has a SentencePiece vocabulary ({vocabularies[0]}), which needs {' and '.join(missing)}",
            "pip install 'sentence-bench[sentencepiece]'",
        )
    quiet()
    if damaged := damaged_weights(folder):
        raise damaged
    check_sizes(name, folder, read_config(folder), len(checkpoint_names(folder)))
    read: Any = None
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False)
        if dropout is not None:
            set_dropout(config, dropout)
        tokenized = read_tokenizer(folder, name)
        tokenizer = tokenized.tokenizer
        options: dict[str, Any] = {
            "config": config,
            "dtype": {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[dtype],
            "output_loading_info": True,
            "trust_remote_code": False,
        }
        read = partial(encoder_class(config).from_pretrained, folder)
        try:
            encoder, info = read(add_pooling_layer=False, **options)
        except TypeError:  # families without a pooling layer do not know the argument
            encoder, info = read(**options)
    except NotAModel:
        raise
    except Exception as error:  # transformers raises many kinds for a damaged folder
        again = None if read is None else partial(read, **options)
        raise explain_failure(name, folder, error, again) from None
    if len(tokenizer) > getattr(config, "vocab_size", len(tokenizer)):
        raise NotAModel(
            f"{name}: its tokenizer has {len(tokenizer)} tokens, its encoder {config.vocab_size}",
            "the tokenizer belongs to another model",
        )
    if missing := sorted(
        n for n in info["missing_keys"] if "pooler" not in n and "position_ids" not in n
    ):
        raise NotAModel(
            f"{name} lacks {len(missing)} weights of its encoder, the first is {missing[0]}",
            "the file is damaged, or its weights are for another architecture",
        )
    unused = sorted(n for n in info["unexpected_keys"] if n.split(".")[-1] not in BUFFERS)
    strange = []
    for tensor in unused:
        inside = without_base(tensor).removeprefix(f"{encoder.base_model_prefix}.")
        if not (reads and inside.startswith(reads)) and not is_head(inside, config):
            strange.append(tensor)
    _check_unused(name, folder, config.model_type, strange)
    if reference.trained is not None:
        take_trained(encoder, reference.trained)
    if dropout is not None:
        check_dropout_arrived(name, encoder, dropout)
    return Backbone(
        name=name,
        revision=reference.revision,
        family=config.model_type,
        encoder=encoder.eval(),
        tokenizer=tokenizer,
        path=reference.path,
        weights=folder,
        trained=reference.trained,
        unused=tuple(unused),
        note=tokenized.note,
    )


def load_without_encoder(reference: Reference, *, offline: bool = False) -> Backbone:
    """A backbone whose encoder and tokenizer the caller loads: of a sentence-transformers folder without a transformer."""
    from bench.backbones.model import Backbone

    reference = fetch(reference, offline=offline)
    assert reference.path is not None
    return Backbone(
        name=reference.name,
        revision=reference.revision,
        family="",
        encoder=None,
        tokenizer=None,
        path=reference.path,
    )


def encoder_class(config: Any) -> Any:
    """transformers' class that reads a model as an encoder: of T5 and its kin the encoder alone, else the base model."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES

    kind = MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.get(config.model_type, "")
    if kind.endswith("EncoderModel"):
        return transformers.AutoModelForTextEncoding
    return transformers.AutoModel


SENTENCEPIECE = ("sentencepiece", "protobuf")
"""What transformers needs to read a SentencePiece vocabulary."""
PREFIX = "prefix_encoder."
"""How the names of the prompt begin that checkpoints of PromCSE's and DCPCSE's class hold next to the encoder."""
MOST_NAMES = 3


def _check_unused(name: str, folder: Path, model_type: str, strange: list[str]) -> None:
    """Raises NotAModel for tensors that a checkpoint holds and nothing reads."""
    if not strange:
        return
    shown = ", ".join(strange[:MOST_NAMES]) + (
        f" and {len(strange) - MOST_NAMES} more" if len(strange) > MOST_NAMES else ""
    )
    file = next(folder / weights for weights in WEIGHTS if (folder / weights).exists())
    raise NotAModel(
        f"{file} holds tensors that a {title(model_type)} encoder does not read: {shown}",
        f"a PromCSE or DCPCSE checkpoint: bench run --method stored-prefix --backbone {name}"
        if any(tensor.startswith(PREFIX) for tensor in strange)
        else "take the config.json that belongs to these weights, or save the file without these tensors if no score needs them",
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
    """No progress bars and no advice from transformers: the harness reports what it does."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


# --- models of the hub: what is in its cache on this machine, and fetching what is not ---
# A revision is part of every name: the one written behind it (``owner/name@revision``), else the one that this project pins,
# else the newest at the first fetch. A model that the cache holds whole is not fetched again.

CANONICAL = {
    "bert-base-uncased": "google-bert",
    "bert-large-uncased": "google-bert",
    "roberta-base": "FacebookAI",
    "roberta-large": "FacebookAI",
}
PINNED = {
    "google-bert/bert-base-uncased": "86b5e0934494bd15c9632b12f734a8a67f723594",
    "google-bert/bert-large-uncased": "6da4b6a26a1877e173fca3225479512db81a5e5b",
    "FacebookAI/roberta-base": "e2da8e2f811d1448a5b465c236feacd80ffbac7b",
    "FacebookAI/roberta-large": "722cf37b1afa9454edce342e7895e588b6ff1d59",
}
"""The commits that a name without a revision means: those that other people's published work names for these models."""
FILES = ("*.json", "*.txt", "*.model", "merges.txt", "vocab.*")  # besides the weights
NOT = (
    "onnx/*",
    "openvino/*",
    "coreml/*",
    "*.ot",
    "flax_model*",
    "tf_model*",
    "training_args.bin",
    "optimizer*",
)


def split(name: str) -> tuple[str, str | None]:
    """ "owner/name@revision" -> the name, and the revision or None."""
    model, _, revision = name.partition("@")
    return model, revision or None


def repositories(model: str) -> list[str]:
    """The model's names on the hub: with its owner, and the short name that older caches have."""
    return [f"{CANONICAL[model]}/{model}", model] if model in CANONICAL else [model]


def in_cache(name: str, weights: Sequence[str] = WEIGHTS) -> Path | None:
    """The snapshot folder of a model that the hub's cache holds whole (``weights``, tokenizer, config), else None."""
    from huggingface_hub import try_to_load_from_cache

    model, revision = split(name)
    for repo in repositories(model):
        for wanted in [revision] if revision else [PINNED.get(repo, "main"), "main"]:
            for file in ("config.json", "modules.json"):
                path = try_to_load_from_cache(repo, file, revision=wanted)
                if isinstance(path, str) and is_whole(Path(path).parent, weights):
                    return Path(path).parent
    return None


def download(name: str, *, allow_pickle: bool, near: str, say: Callable[[str], None]) -> Path:
    """Fetch a model; returns its snapshot folder, whose name is the commit. The hub's client resumes interrupted downloads.

    Raises NotAModel, with what to do: no such model, private or gated, no network, no safetensors, no space. ``near``: a hint at a
    name that may be meant instead; ``say`` gets one line about what is fetched.
    """
    from huggingface_hub.utils import disable_progress_bars

    model, revision = split(name)
    repo = repositories(model)[0]
    revision = revision or PINNED.get(repo, "main")
    where = site("model", repo, revision, "")
    try:
        info = repository_info(where, say)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
        wanted = _wanted(name, repo, sizes, allow_pickle)
        licence = getattr(info.card_data, "license", None) or "not stated"
        size = f"{sum(sizes[file] for file in wanted) / 1e6:,.0f} MB"
        say(f"fetching backbone {name}: {repo} at {str(info.sha)[:12]}, {size}, licence {licence}")
        if not sys.stderr.isatty():
            disable_progress_bars()
        return fetch_snapshot(where, info, wanted, say)
    except (FetchFailed, DataDamaged, OSError) as failure:
        hint = getattr(failure, "hint", None) or "free some space, or set HF_HOME to another disk"
        raise NotAModel(f"backbone '{name}': {failure}", near + hint) from None


def _wanted(name: str, repo: str, files: Iterable[str], allow_pickle: bool) -> list[str]:
    """Which files are fetched: of several copies of the weights only those that transformers takes.

    Raises NotAModel where there are none, or only a pickle without ``allow_pickle``.
    """
    from huggingface_hub.utils import filter_repo_objects

    names = {Path(file).name for file in files}
    if not names.isdisjoint(WEIGHTS):
        weights: tuple[str, ...] = ("model.safetensors", "model-*-of-*.safetensors")
        pickles = pickled_modules(files)
        if pickles and not allow_pickle:
            raise NotAModel(
                f"backbone '{name}': {pickles[0]} of {repo} is a pickle, which could run code",
                ALLOW,
            )
        weights += tuple(pickles)
    elif names.isdisjoint(PICKLES):
        raise NotAModel(
            f"'{name}' cannot be read here: {repo} has no model.safetensors",
            "give the name of a model of transformers or sentence-transformers",
        )
    elif allow_pickle:
        weights = ("pytorch_model.bin", "pytorch_model-*-of-*.bin")
    else:
        raise NotAModel(
            f"backbone '{name}' has its weights as a pickle only ({repo}: pytorch_model.bin), which could run code",
            "--allow-pickle reads only the tensors in it and stores them as safetensors",
        )
    return sorted(
        filter_repo_objects(
            files,
            allow_patterns=[*FILES, *weights, *(f"*/{pattern}" for pattern in weights)],
            ignore_patterns=list(NOT),
        )
    )


PARAMETERS = {
    "bert-base-uncased": 110_104_890,
    "bert-large-uncased": 336_224_058,
    "roberta-base": 125_288_793,
    "roberta-large": 356_462_681,
}
"""What the checkpoints of these models hold, with the dense layer of the MLM head; each number has four bytes."""


def describe_pending(name: str) -> Pending:
    """What fetching a model would bring, without asking the hub: size and licence where they are known."""
    model, revision = split(name)
    repo = repositories(model)[0]
    commit = revision or PINNED.get(repo)
    licences = {"google-bert": "Apache-2.0", "FacebookAI": "MIT"}  # as the models' pages state
    return Pending(
        name=name,
        kind="backbone",
        where=f"hub model {repo}" + (f" (commit {commit[:12]})" if commit else ""),
        urls=(site("model", repo, commit or "main", "").url,),
        bytes=4 * PARAMETERS.get(model.rpartition("/")[2], 0) or None,
        licence=licences.get(CANONICAL.get(model, ""), ON_ITS_PAGE),
    )
