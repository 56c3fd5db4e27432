"""Positions of an encoder, read from the encoder itself: the first one, and how many there are.

RoBERTa and its relatives (XLM-R, MPNet, Longformer, data2vec-text, XLM-R-XL, X-MOD ...) number a
text's positions from padding_idx + 1: their table of position embeddings has a row for padding,
like the table of word embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.base.errors import BenchError

TABLES = ("position_embeddings", "position_embedding", "embed_positions", "wpe")
"""Names of the learned table of positions in transformers' models."""
WITHOUT_POSITIONS = 512
"""Tokens of a text if the model has no last position (T5, XLNet, BLOOM): the length that most of
them were trained with.
"""


def first_position(encoder: Any) -> int:
    """Return the position id of a text's first token."""
    padding = getattr(_table(encoder), "padding_idx", None)
    if padding is not None:
        return int(padding) + 1
    numbered = getattr(getattr(encoder, "embeddings", None), "position_ids", None)
    if numbered is None or numbered.is_meta:  # without memory there is nothing to read
        return 0
    return int(numbered.flatten()[0])  # 2 for Nystromformer


def table_length(encoder: Any) -> int | None:
    """Return how many tokens of a text have a row in the table of positions.

    None means that there is no table: positions are computed.
    """
    table = _table(encoder)
    if table is None:
        return None
    skipped = getattr(table, "offset", first_position(encoder))  # OPT and BART skip two rows
    return int(table.num_embeddings) - int(skipped)


def longest_text(encoder: Any) -> int:
    """Return how many tokens of a text are read by default, special tokens included."""
    named = named_positions(encoder) or WITHOUT_POSITIONS
    return min(named - first_position(encoder), table_length(encoder) or named)


def named_positions(encoder: Any) -> int | None:
    """Return the number of positions in the config; None if it names none (XLNet writes -1)."""
    config = getattr(encoder, "config", None)
    named = getattr(config, "max_position_embeddings", None)
    if named is None:
        named = getattr(config, "max_seq_len", None)  # MPT's name for it
    return named if isinstance(named, int) and named > 0 else None


def _table(encoder: Any) -> Any:
    for module in encoder.modules():
        for name in TABLES:
            table = getattr(module, name, None)
            if hasattr(table, "num_embeddings"):
                return table
    return None


FROM_PADDING = {
    "camembert",
    "data2vec-text",
    "longformer",
    "mpnet",
    "roberta",
    "roberta-prelayernorm",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}
"""Model types that number positions from padding_idx + 1, for a config without a loaded encoder."""


def check_max_length(max_length: int | None, config: Mapping[str, Any], name: str) -> None:
    """Raise BenchError if a longest text has more tokens than the config has positions."""
    positions = config.get("max_position_embeddings")
    if config.get("model_type") == "gpt2":
        positions = config.get("n_positions", positions)
    if config.get("position_biased_input") is False:  # DeBERTa: distances alone count
        return
    if max_length is None or not isinstance(positions, int) or positions < 1:
        return
    if config.get("model_type") in FROM_PADDING:
        positions -= int(config.get("pad_token_id") or 0) + 1
    if max_length > positions:
        raise BenchError(
            f"max_length={max_length}: {name} has {positions} positions",
            f"--set max_length={positions}, or less",
        )
