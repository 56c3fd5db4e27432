"""Token ids agree with the folder's tokenizer.json, whatever class transformers makes of it, or the
difference is reported.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from st_folders import bert_folder, edit_json, word_tokenizer
from tokenizers import Tokenizer

from bench.backbones import load, resolve
from bench.backbones.tokenizer import PROBE

TEXTS = [*PROBE, "The Guitar WOMAN “reads” , café", "<mask> man </s>"]


def check_ids(folder: Path) -> str:
    """Return the note about the ids; fail if they differ from the file's."""
    backbone = load(resolve(str(folder)))
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    for text in TEXTS:
        assert backbone.ids([text])[0] == raw.encode(text, add_special_tokens=False).ids
        whole = backbone.tokenizer(text)["input_ids"]
        assert whole == raw.encode(text).ids
    assert backbone.note == "" or backbone.note in backbone.report()
    return backbone.note


@pytest.mark.parametrize(
    ("kind", "unigram"),
    [("BertTokenizer", True), ("T5Tokenizer", False), ("NoSuchTokenizer", False)],
)
def test_a_class_that_is_missing_or_of_another_kind(
    kind: str, unigram: bool, tmp_path: Path
) -> None:
    folder = bert_folder(tmp_path / "model", word_tokenizer(unigram=unigram))
    edit_json(folder / "tokenizer_config.json", tokenizer_class=kind)
    check_ids(folder)


def test_a_class_that_changes_the_ids_is_named(tmp_path: Path) -> None:
    folder = bert_folder(tmp_path / "model", word_tokenizer())
    assert check_ids(folder) == ""
    edit_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    note = check_ids(folder)
    assert note == (
        "tokenised as tokenizer.json says, not by transformers' BertTokenizer, "
        "which gives other ids"
    )


def test_a_config_that_says_itself_what_differs(tmp_path: Path) -> None:
    """The do_lower_case of the config counts, as always in transformers, not that of the file."""
    from transformers import BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "man", "Man", "."]
    tokenizer = BertTokenizer(vocab={word: i for i, word in enumerate(words)}, do_lower_case=True)
    folder = bert_folder(tmp_path / "model", tokenizer)
    assert load(resolve(str(folder))).note == ""
    edit_json(folder / "tokenizer_config.json", do_lower_case=False)
    assert load(resolve(str(folder))).ids(["Man man."]) == [[6, 5, 7]]


def test_a_file_that_wants_padding_and_truncation(tmp_path: Path) -> None:
    tokenizer = word_tokenizer()
    folder = bert_folder(tmp_path / "model", tokenizer)
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    raw.enable_truncation(4)
    raw.enable_padding(length=9)
    raw.save(str(folder / "tokenizer.json"))
    backbone = load(resolve(str(folder)))
    assert backbone.note == "" and len(backbone.ids(["man woman man woman man"])[0]) == 5
