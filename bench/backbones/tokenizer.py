"""Read the tokenizer of a model folder, and compare its ids with the folder's tokenizer.json.

transformers 5 builds the class that tokenizer_config.json names, or the one of the model type, and
takes only the vocabulary from tokenizer.json; the class decides about normalisation, splitting and
special tokens. If the class is missing or of another kind, the ids differ from the training's. So
both are compared, and the file wins, unless tokenizer_config.json states the difference. A file
without a post-processor says nothing about the special tokens around a text: then the class
decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.backbones.refusals import read_settings
from bench.base.errors import NotAModel, one_line
from bench.base.reading import TOKENIZER_BYTES, read_settings_text

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
VOCABULARY_WORDS = 40
"""The number of words in the texts that are made from a vocabulary."""
DECLARED = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
    "add_prefix_space": "add_prefix_space",
}
"""Key of tokenizer_config.json -> the key with the same meaning in a step of tokenizer.json."""
ENDS = ("add_bos_token", "add_eos_token")
"""Keys of tokenizer_config.json that set the special tokens around a text."""
Encode = Callable[[str, bool], list[int]]


@dataclass(frozen=True)
class ReadTokenizer:
    """A tokenizer with a note about its ids."""

    tokenizer: Any
    note: str = ""


def read_tokenizer(folder: Path, name: str) -> ReadTokenizer:
    """Read a folder's tokenizer so that it gives the ids of its tokenizer.json.

    The note also names an end of text that is declared and not added. Raises NotAModel if
    transformers cannot give the ids of the file.
    """
    read = _read_as_stored(folder, name)
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


def _read_as_stored(folder: Path, name: str) -> ReadTokenizer:
    """Read the tokenizer that gives the ids of a folder's tokenizer.json.

    Raises NotAModel if transformers cannot give them.
    """
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        kind = type(tokenizer).__name__
    except Exception as error:  # such as a class that cannot read this kind of vocabulary
        if not (folder / FILE).is_file() or "trust_remote_code" in str(error):
            raise
        tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        kind = str(read_settings(folder / "tokenizer_config.json").get("tokenizer_class"))
        if difference_from_file(tokenizer, folder) is None:
            note = f"tokenised as {FILE} says, which transformers' {kind} cannot read"
            return ReadTokenizer(tokenizer, note)
    example = difference_from_file(tokenizer, folder)
    if example is None:
        return ReadTokenizer(tokenizer)
    declared = declared_difference(tokenizer, folder)
    if declared:
        note = f"{declared} in tokenizer_config.json, which {FILE} contradicts"
        return ReadTokenizer(tokenizer, note)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    if difference_from_file(tokenizer, folder) is not None:
        raise NotAModel(
            f"{name}: transformers' {kind} gives other token ids than its {FILE}, the first for "
            f"{example!r}",
            "save the tokenizer again with the transformers that is installed, or correct "
            "tokenizer_class in tokenizer_config.json",
        )
    return ReadTokenizer(
        tokenizer, f"tokenised as {FILE} says, not by transformers' {kind}, which gives other ids"
    )


def check_vocabulary(name: str, tokenizer: Any, config: Any) -> None:
    """Raise NotAModel if the tokenizer has tokens that the encoder has no embedding for."""
    size = getattr(config, "vocab_size", None)
    if size is not None and len(tokenizer) > size:
        raise NotAModel(
            f"{name}: its tokenizer has {len(tokenizer)} tokens, its encoder {size}",
            "the tokenizer belongs to another model",
        )


def difference_from_file(tokenizer: Any, folder: Path, *, lower: bool = False) -> str | None:
    """Return the first text with other ids than the folder's tokenizer.json gives, or None.

    ``lower``: the tokenizer lower-cases texts that the file would not. Raises NotAModel if the file
    is damaged.
    """
    file = folder / FILE
    if not file.is_file():
        return None
    stored = _read_file(file)
    wanted = _encoder(stored)
    kinds = (False,) if stored.post_processor is None else (False, True)
    for text in probe_texts(stored):
        given = text.lower() if lower else text
        for special in kinds:
            if _ids(tokenizer, text, special) != wanted(given, special):
                return text
    return None


def declared_difference(tokenizer: Any, folder: Path) -> str:
    """Return the settings of tokenizer_config.json that explain every difference, else ""."""
    settings = read_settings(folder / "tokenizer_config.json")
    declared = {DECLARED[key]: settings[key] for key in DECLARED if settings.get(key) is not None}
    ends = [key for key in ENDS if settings.get(key) is not None]
    content = json.loads(read_settings_text(folder / FILE, TOKENIZER_BYTES))
    for part in ("normalizer", "pre_tokenizer"):
        _declare(content.get(part), declared)
    stored = _from_text(json.dumps(content))
    wanted = _encoder(stored)
    kinds = (False,) if ends or stored.post_processor is None else (False, True)
    for text in probe_texts(stored):
        for special in kinds:
            if _ids(tokenizer, text, special) != wanted(text, special):
                return ""
    keys = [key for key in DECLARED if settings.get(key) is not None] + ends
    return "tokenised with " + ", ".join(f"{key}={json.dumps(settings[key])}" for key in keys)


def probe_texts(stored: Any) -> list[str]:
    """Return texts that show how a tokenizer reads: fixed ones, and some of its own vocabulary."""
    added = {token.content for token in stored.get_added_tokens_decoder().values()}
    words = [word for word in sorted(stored.get_vocab()) if word not in added]
    step = max(1, len(words) // VOCABULARY_WORDS)
    line = " ".join(words[::step])
    return [*PROBE, line, line.upper(), line.title()]


def _declare(step: Any, declared: dict[str, Any]) -> None:
    """Write declared values into a step of tokenizer.json and the steps inside it."""
    if isinstance(step, list):
        for inner in step:
            _declare(inner, declared)
    elif isinstance(step, dict):
        for key in declared.keys() & step.keys():
            step[key] = declared[key]
        for inner in step.values():
            _declare(inner, declared)


def _ids(tokenizer: Any, text: str, special: bool) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    return ids


def _read_file(file: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # the reader raises Exception itself
        raise NotAModel(f"{file} is damaged: {one_line(error)[:160]}") from None


def _from_text(content: str) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_str(content)


def _encoder(tokenizer: Any) -> Encode:
    tokenizer.no_truncation()  # which the file may ask for
    tokenizer.no_padding()

    def encode(text: str, special: bool) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=special).ids
        return ids

    return encode
