"""Prompts of trainable numbers for a frozen encoder. They know no method.

n sentences, T tokens, P length of the prompt, H hidden size, L layers, A attention heads, d = H /
A.

* :class:`DeepPrefix`: P keys and P values a layer, which the sentence's tokens attend to (prefix
  tuning, Li and Liang 2021; for sentence embeddings PromCSE, Jiang et al. 2022, as its authors'
  code has it: the parameters ARE keys and values, they pass through no projection and no layer
  norm). A prefix has no hidden state and is never pooled.
* :class:`InputPrompt`: P vectors before the word embeddings, processed by all layers as tokens are
  (Lester et al. 2021).

Both leave P positions to the prompt: the sentence's first token has position P. Both give the
states of the T tokens of the sentence, so that CLS stays at index 0 and poolers use the sentence's
own mask.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.backbones.direction import check_not_causal
from bench.backbones.families import check_prefix
from bench.method import Backbone, BenchError, Features, Ids, ModuleFile, Portable, TorchMethod, pad
from bench.method.json_files import read_json
from bench.methods.pooling import Head, portable_of
from bench.methods.travels import FOLDER

KeysValues = Sequence[tuple[Tensor, Tensor]]  # for each layer (n, A, P, d) keys and as many values
KINDS = ("deep", "layer-shared", "input-layer")
SHORTEST = 3
"""Tokens that must have room behind a prompt: [CLS], a token, [SEP]."""
INIT_STD = 0.02  # the library's initializer_range, which the authors' prefix and head start from


class PrefixCache:
    """A prefix as the library's cache.

    It is only read, so that any number of passes may share one.
    """

    def __init__(self, keys_values: KeysValues) -> None:
        self.keys_values = keys_values

    def get_seq_length(self, *_: Any, **__: Any) -> int:
        """Return the position at which the sentence starts."""
        return self.keys_values[0][0].shape[2]

    def update(
        self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Return the keys and values of one layer, (n, A, P + T, d) each, with the prefix before
        the tokens'.

        The name is the library's; nothing is stored.
        """
        k, v = self.keys_values[layer]
        return torch.cat([k.to(keys.dtype), keys], dim=2), torch.cat(
            [v.to(values.dtype), values], dim=2
        )


def states_behind_prefix(encoder: Any, features: Features, keys_values: KeysValues) -> Tensor:
    """Return the last layer's states, (n, T, H), of sentences behind a prefix.

    They attend to the prefix as well as to themselves.
    """
    cache = PrefixCache(keys_values)
    mask = with_prompt(features["attention_mask"], cache.get_seq_length())
    states: Tensor = encoder(
        input_ids=features["input_ids"], attention_mask=mask, past_key_values=cache
    ).last_hidden_state
    return states


def behind_one_draw(
    encoder: Any, prompt: DeepPrefix, features: Features
) -> Callable[[Features], Tensor]:
    """Return a function from features of as many rows to their states.

    Every call has the same draw of the prompt's dropout.
    """
    drawn = prompt(len(features["input_ids"]))
    return lambda read: states_behind_prefix(encoder, read, drawn)


def with_prompt(mask_nT: Tensor, P: int) -> Tensor:
    """Put P ones before a mask, (n, P + T): the prompt is always attended to."""
    # not len(): a traced graph would keep the number
    return torch.cat([mask_nT.new_ones(mask_nT.shape[0], P), mask_nT], dim=1)


class Prompt(nn.Module):
    """The common part of both prompts.

    P positions belong to the prompt and not to the sentence, and the state of CLS represents the
    sentence.
    """

    kind: str  # one of KINDS
    length: int  # P
    table: nn.Parameter

    def assemble(self, method: TorchMethod, ids: Sequence[Ids], max_length: int | None) -> Features:
        """Turn sentences into features in the positions that are left to them."""
        longest = (
            min(max_length or method.backbone.max_tokens, self.room(method.backbone))
            - len(method.before)
            - len(method.after)
        )
        return pad(ids, method.pad_id, before=method.before, after=method.after, longest=longest)

    def room(self, backbone: Backbone) -> int:
        """Return the positions that the prompt leaves to a sentence."""
        return backbone.max_tokens - self.length

    def pooled(self, states_nTH: Tensor, features: Features) -> Tensor:
        """Return the state of CLS, (n, H)."""
        return states_nTH[:, 0]  # (n, H)

    def portable(self, method: TorchMethod, head: Head | None) -> Portable:
        """Return the parts of a method that pools behind this prompt."""
        reader = ModuleFile(
            FOLDER / "prompted.py", "Prompted", {"kind": self.kind}, {"table": self.table}
        )
        return replace(
            portable_of(method, "cls", head), max_tokens=self.room(method.backbone), reader=reader
        )


class DeepPrefix(Prompt):
    """Keys and values of P slots at every layer.

    They are a (P, 2LH) table; its row p holds, layer by layer, H numbers of a key and H of a value,
    each cut into A heads. ``shared``: one pair for all layers, a (P, 2H) table. Dropout is drawn
    for each row of the batch and each number, and so helps to make two views of a sentence differ
    (``shared``: once a row for all layers). It starts as N(0, 0.02).
    """

    def __init__(
        self,
        layers: int,
        heads: int,
        hidden: int,
        length: int,
        dropout: float,
        *,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.layers = layers
        self.heads = heads
        self.length = length
        self.shared = shared
        self.kind = "layer-shared" if shared else "deep"
        stored_layers = 1 if shared else layers
        table = torch.empty(length, 2 * stored_layers * hidden).normal_(std=INIT_STD)
        self.table = nn.Parameter(table)
        self.dropout = nn.Dropout(dropout)

    def forward(self, n: int) -> KeysValues:
        """Draw the dropout once for n sentences and return keys and values.

        Two passes that need the same dropout mask take the same draw.
        """
        kinds = 2 if self.shared else 2 * self.layers  # key and value of layer 0, of layer 1, ...
        # (P, 2L, A, d)
        cut = self.table.view(
            self.length, kinds, self.heads, self.table.shape[1] // (kinds * self.heads)
        )
        # 2L times (n, A, P, d)
        drawn = self.dropout(cut.expand(n, -1, -1, -1, -1)).permute(2, 0, 3, 1, 4).unbind()
        pairs = list(zip(drawn[0::2], drawn[1::2], strict=True))
        return pairs * self.layers if self.shared else pairs

    def states(self, encoder: Any, features: Features) -> Tensor:
        return states_behind_prefix(encoder, features, self(features["input_ids"].shape[0]))


class InputPrompt(Prompt):
    """P vectors before the word embeddings.

    The encoder's own embedding sum, layer norm and dropout apply to them.
    """

    kind = "input-layer"

    def __init__(self, hidden: int, length: int) -> None:
        super().__init__()
        self.length = length
        self.table = nn.Parameter(torch.empty(length, hidden).normal_(std=INIT_STD))

    def states(self, encoder: Any, features: Features) -> Tensor:
        words = encoder.get_input_embeddings()(features["input_ids"])  # (n, T, H)
        whole = torch.cat([self.table.to(words.dtype).expand(words.shape[0], -1, -1), words], dim=1)
        mask = with_prompt(features["attention_mask"], self.length)
        # without ids the library counts positions from its first, RoBERTa's padding included: a
        # token at t gets P + t
        states: Tensor = encoder(inputs_embeds=whole, attention_mask=mask).last_hidden_state
        return states[:, self.length :]


def check_prompt(
    kind: object, length: int, dropout: Any = None, backbone: Path | None = None
) -> None:
    """Raise BenchError for a prompt that cannot work.

    That is an unknown kind, a prompt of no vectors or longer than the ``backbone`` in that folder
    takes, or a dropout outside 0 to 1.
    """
    if kind not in KINDS:
        raise BenchError(f"prompt={kind} is unknown", f"choose one of {', '.join(KINDS)}")
    if length < 1:
        raise BenchError(f"prompt_length={length}: a prompt has one vector at least")
    if backbone is not None and (backbone / "config.json").is_file():
        positions = read_json(backbone / "config.json").get("max_position_embeddings")
        if isinstance(positions, int) and length > positions - SHORTEST:
            raise BenchError(
                f"prompt_length={length}: the backbone has {positions} positions for prompt and "
                "sentence"
            )
        check_not_causal(
            backbone,
            "a prompt",
            "the first token, which stands for the sentence, would see the prompt alone",
            "take a backbone that reads both ways, such as BERT or RoBERTa",
        )
        if kind != "input-layer":
            check_prefix(backbone)
    try:
        possible = dropout is None or 0 <= float(dropout) < 1
    except ValueError:
        possible = False
    if not possible:
        raise BenchError(
            f"prefix_dropout={dropout}: expected a number from 0 to below 1, "
            "or none for the backbone's own"
        )


def prompt_for(
    backbone: Backbone, kind: str, length: int, dropout: Any = None
) -> DeepPrefix | InputPrompt:
    """Return a prompt of one of the KINDS that fits a backbone.

    ``dropout`` None: the backbone's own between its layers. Raises BenchError if the encoder takes
    no prefix, or the prompt leaves no room for a sentence.
    """
    check_prompt(kind, length, dropout)
    config = backbone.encoder.config
    if length > backbone.max_tokens - SHORTEST:
        raise BenchError(
            f"prompt_length={length}: {backbone.name} has {backbone.max_tokens} positions for "
            "prompt and sentence"
        )
    if kind == "input-layer":
        return InputPrompt(backbone.embedding_size, length)
    takes_keys = "past_key_values" in inspect.signature(backbone.encoder.forward).parameters
    if not takes_keys or not backbone.reads_ahead or not hasattr(config, "hidden_dropout_prob"):
        raise BenchError(
            f"{backbone.name} is a {backbone.family} model, "
            "whose layers take no keys and values from outside as BERT's do",
            "a deep prefix needs a backbone of the BERT or RoBERTa family",
        )
    p = config.hidden_dropout_prob if dropout is None else float(dropout)
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    return DeepPrefix(layers, heads, config.hidden_size, length, p, shared=kind == "layer-shared")
