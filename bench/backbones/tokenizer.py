"""Read the tokenizer of a model folder, so that it gives the ids of the folder's tokenizer.json.

transformers 5 builds the class that tokenizer_config.json names, or the one of the model type, and
takes only the vocabulary from tokenizer.json; the class decides about normalisation, splitting and
special tokens. If the class is missing or of another kind, the ids differ from the training's, and
almost every word may be unknown; transformers says nothing. So its ids of some texts are compared
with those of the file, as tokenizer_config.json changes it. A file without a post-processor says
nothing about the special tokens around a text: then the class decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.backbones.folder import read_settings
from bench.base.errors import NotAModel, one_line

FILE = "tokenizer.json"
PROBE = (
    "A man is playing the Guitar.",
    "Two DOGS run; it's 42 % colder, isn't it?",
    "naïve café, Ünïcode façade — “quoted” ‘words’ … and a dash",
    'He said: "no." (Twice!)',
    "中文句子 and русский текст, ελληνικά",
    "  spaces,\ttabs\nand lines  ",
    "unbelievably overcomplicated internationalisation \U0001f600",
    "http://example.org/a_b-c?d=1&e=2 #tag @name",
    "",
)
DECLARED = (
    ("normalizer", "lowercase", "do_lower_case"),
    ("normalizer", "strip_accents", "strip_accents"),
    ("normalizer", "handle_chinese_chars", "tokenize_chinese_chars"),
    ("pre_tokenizer", "add_prefix_space", "add_prefix_space"),
)
"""Steps of tokenizer.json, their attributes, and keys of tokenizer_config.json that set them."""
ENDS = ("add_bos_token", "add_eos_token")
"""Keys of tokenizer_config.json that set the special tokens around a text."""


@dataclass(frozen=True)
class ReadTokenizer:
    """A tokenizer with a note about its ids."""

    tokenizer: Any
    note: str = ""


def read_tokenizer(folder: Path) -> ReadTokenizer:
    """Read a folder's tokenizer so that it gives the ids of its tokenizer.json.

    The note also names an end of text that is declared and not added. Raises NotAModel if the file
    is damaged.
    """
    read = _read_as_stored(folder)
    notes = [note for note in (read.note, contradicted_ends(read.tokenizer, folder)) if note]
    return ReadTokenizer(read.tokenizer, "; ".join(notes))


def contradicted_ends(tokenizer: Any, folder: Path) -> str:
    """Return a line if the tokens around a text are not those that tokenizer_config.json declares.

    "" if they are, and if it declares none. transformers before 5 added a declared token; now the
    post-processor of tokenizer.json alone decides.
    """
    settings = read_settings(folder / "tokenizer_config.json")
    lines = []
    for key, place in (("add_bos_token", 0), ("add_eos_token", -1)):
        token = getattr(tokenizer, "bos_token" if place == 0 else "eos_token", None)
        declared = settings.get(key)
        if declared is None or token is None:
            continue
        ids = _ids(tokenizer, "a", True)
        is_there = bool(ids) and ids[place] == tokenizer.convert_tokens_to_ids(token)
        if is_there == declared:
            continue
        line = f"{key}={json.dumps(declared)} in tokenizer_config.json is not what {FILE} does"
        if declared:
            template = f"{token}[X]" if place == 0 else f"[X]{token}"
            line += f": no text has {token} there; bench evaluate --prefix '{template}' adds it"
        else:
            line += f": every text has {token} there; correct one of the two"
        lines.append(line)
    return "; ".join(lines)


def _read_as_stored(folder: Path) -> ReadTokenizer:
    """Read the tokenizer that gives the ids of a folder's tokenizer.json."""
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        if not differs_from_file(tokenizer, folder):
            return ReadTokenizer(tokenizer)
        why = f"not by transformers' {type(tokenizer).__name__}, which gives other ids"
    except NotAModel:
        raise
    except Exception as error:  # such as a class that cannot read this kind of vocabulary
        if not (folder / FILE).is_file() or "trust_remote_code" in str(error):
            raise
        kind = read_settings(folder / "tokenizer_config.json").get("tokenizer_class")
        why = f"which transformers' {kind} cannot read"
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    return ReadTokenizer(tokenizer, f"tokenised as {FILE} says, {why}")


def check_vocabulary(name: str, tokenizer: Any, config: Any) -> None:
    """Raise NotAModel if the tokenizer has tokens that the encoder has no embedding for."""
    size = getattr(config, "vocab_size", None)
    if size is not None and len(tokenizer) > size:
        raise NotAModel(
            f"{name}: its tokenizer has {len(tokenizer)} tokens, its encoder {size}",
            "the tokenizer belongs to another model",
        )


def differs_from_file(tokenizer: Any, folder: Path, *, lower: bool = False) -> bool:
    """Tell whether a tokenizer gives other ids than the folder's tokenizer.json.

    The declarations of tokenizer_config.json replace those in the file. ``lower``: the tokenizer
    lower-cases texts that the file would not. Raises NotAModel if the file is damaged.
    """
    if not (folder / FILE).is_file():
        return False
    settings = read_settings(folder / "tokenizer_config.json")
    stored = _read_file(folder / FILE, settings)
    class_decides = stored.post_processor is None or any(
        settings.get(key) is not None for key in ENDS
    )
    for text in PROBE:
        given = text.lower() if lower else text
        for special in (False,) if class_decides else (False, True):
            wanted = stored.encode(given, add_special_tokens=special).ids
            if _ids(tokenizer, text, special) != wanted:
                return True
    return False


def _ids(tokenizer: Any, text: str, special: bool) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    return ids


def _read_file(file: Path, settings: Mapping[str, Any]) -> Any:
    """Read a tokenizer.json without padding and truncation, with the changes of
    tokenizer_config.json."""
    from tokenizers import Tokenizer

    try:
        stored = Tokenizer.from_file(str(file))
    except Exception as error:  # the reader raises Exception itself
        raise NotAModel(f"{file} is damaged: {one_line(error)[:160]}") from None
    stored.no_truncation()
    stored.no_padding()
    for part, attribute, key in DECLARED:
        step = getattr(stored, part)
        if isinstance(settings.get(key), bool) and hasattr(step, attribute):
            setattr(step, attribute, settings[key])
    return stored
