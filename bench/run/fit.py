"""Checks that a method fits its backbone, its corpus and the number of processes."""

from __future__ import annotations

from bench.backbones import Reference
from bench.backbones.dropout import own_dropout
from bench.base.errors import BenchError
from bench.data.corpora import Corpus
from bench.method.checks import check_noise
from bench.method.contract import Method
from bench.method.plugins import Plugin
from bench.method.recipe import Recipe


def check_dropout(cls: type[Method], setting: str, recipe: Recipe, backbone: Reference) -> None:
    """Raise BenchError if dropout should make two views of a sentence differ, but the backbone has
    none.
    """
    if own_dropout(backbone.config()) == 0:
        check_noise(cls, setting, recipe, backbone.name, dropout=0)


def check_kind(corpus: Corpus, plugin: Plugin, setting: str, recipe: Recipe) -> None:
    """Raise BenchError if a corpus does not have the columns that the method trains on."""
    needed = plugin.cls.needs(setting, recipe)
    if corpus.kind == "n-tuples" and "triplets" in needed:
        if plugin.cls.several_negatives:
            return
        raise BenchError(
            f"{plugin.name} takes one hard negative per row; "
            f"{corpus.name} has {len(corpus.columns) - 2}",
            "write a row for each of them: sent0, sent1, hard_neg",
        )
    if corpus.kind not in needed:
        helps = "docs/data.md lists the columns of each kind"
        if "sentences" in needed:
            helps = "--set corpus_column=all, or the name of a column, trains on it as sentences"
        raise BenchError(
            f"{plugin.name} in the {setting} setting needs {' or '.join(needed)}; "
            f"{corpus.name} has the columns {', '.join(corpus.columns)}",
            helps,
        )
