"""Prompts of trainable numbers for a frozen encoder. They know no method.

n sentences, T tokens, P length of the prompt, H hidden size, L layers, A attention heads, d = H /
A.

* :class:`DeepPrefix`: P keys and P values a layer, which the sentence's tokens attend to (prefix
  tuning, Li and Liang 2021; for sentence embeddings PromCSE, Jiang et al. 2022, as its authors'
  code has it: the parameters ARE keys and values, they pass through no projection and no layer
  norm). A prefix has no hidden state and is never pooled.
* :class:`HiddenPrefix`: P states at the input of every layer, which the layer's own W_k and W_v
  make keys and values of: eq. 1 of PromCSE's paper.
* :class:`InputPrompt`: P vectors before the word embeddings, processed by all layers as tokens are
  (Lester et al. 2021).

All leave P positions to the prompt: the sentence's first token has position P. All give the states
of the T tokens of the sentence, so that CLS stays at index 0 and poolers use the sentence's own
mask.
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
from bench.backbones.families import FAMILIES, check_layers
from bench.backbones.folder import read_config
from bench.backbones.held_in import computes_in
from bench.method import (
    Backbone,
    BenchError,
    Features,
    Ids,
    ModuleFile,
    Portable,
    Recipe,
    TorchMethod,
    pad,
)
from bench.methods.layers import layers_of
from bench.methods.pooling import Head, portable_of
from bench.methods.travels import FOLDER

KeysValues = Sequence[tuple[Tensor, Tensor]]  # for each layer (n, A, P, d) keys and as many values
KINDS = ("deep", "hidden", "layer-shared", "input-layer")
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
    encoder: Any, prompt: Prefix, features: Features
) -> Callable[[Features], Tensor]:
    """Return a function from features of as many rows to their states.

    Every call has the same draw of the prompt's dropout.
    """
    drawn = prompt.keys_values(encoder, len(features["input_ids"]))
    return lambda read: states_behind_prefix(encoder, read, drawn)


def with_prompt(mask_nT: Tensor, P: int) -> Tensor:
    """Put P ones before a mask, (n, P + T): the prompt is always attended to."""
    # not len(): a traced graph would keep the number
    return torch.cat([mask_nT.new_ones(mask_nT.shape[0], P), mask_nT], dim=1)


class Prompt(nn.Module):
    """The common part of all prompts.

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
        kind, table = self.exported(method.encoder)
        reader = ModuleFile(FOLDER / "readers.py", "Prompted", {"kind": kind}, {"table": table})
        return replace(
            portable_of(method, "cls", head), max_tokens=self.room(method.backbone), reader=reader
        )

    def exported(self, encoder: Any) -> tuple[str, Tensor]:
        """Return kind and table as methods/travels/readers.py reads them."""
        return self.kind, self.table


class Prefix(Prompt):
    """P slots at every layer that the sentence's tokens attend to.

    The (P, N) table starts as N(0, 0.02). Dropout is drawn for each row of the batch and each
    number, and so helps to make two views of a sentence differ.
    """

    def __init__(self, length: int, numbers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.length = length
        self.heads = heads
        self.table = nn.Parameter(torch.empty(length, numbers).normal_(std=INIT_STD))
        self.dropout = nn.Dropout(dropout)

    def keys_values(self, encoder: Any, n: int) -> KeysValues:
        """Draw the dropout once for n sentences and return each layer's keys and values.

        Two passes that need the same dropout mask take the same draw.
        """
        raise NotImplementedError

    def states(self, encoder: Any, features: Features) -> Tensor:
        drawn = self.keys_values(encoder, features["input_ids"].shape[0])
        return states_behind_prefix(encoder, features, drawn)


class DeepPrefix(Prefix):
    """Keys and values of P slots at every layer.

    They are a (P, 2LH) table; its row p holds, layer by layer, H numbers of a key and H of a value,
    each cut into A heads. ``shared``: one pair for all layers, a (P, 2H) table; its dropout is
    drawn once per row for all layers.
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
        stored_layers = 1 if shared else layers
        super().__init__(length, 2 * stored_layers * hidden, heads, dropout)
        self.layers = layers
        self.shared = shared
        self.kind = "layer-shared" if shared else "deep"

    def keys_values(self, encoder: Any, n: int) -> KeysValues:
        kinds = 2 if self.shared else 2 * self.layers  # key and value of layer 0, of layer 1, ...
        # (P, 2L, A, d)
        cut = self.table.view(
            self.length, kinds, self.heads, self.table.shape[1] // (kinds * self.heads)
        )
        # 2L times (n, A, P, d)
        drawn = self.dropout(cut.expand(n, -1, -1, -1, -1)).permute(2, 0, 3, 1, 4).unbind()
        pairs = list(zip(drawn[0::2], drawn[1::2], strict=True))
        return pairs * self.layers if self.shared else pairs


class HiddenPrefix(Prefix):
    """States of P slots at the input of every layer.

    They are a (P, LH) table; its row p holds, layer by layer, H numbers. A layer makes keys and
    values of them as of its tokens' states, by its own frozen W_k and W_v. Its output at these
    slots is not computed: the next layer's numbers would replace it.
    """

    kind = "hidden"

    def __init__(self, layers: int, heads: int, hidden: int, length: int, dropout: float) -> None:
        super().__init__(length, layers * hidden, heads, dropout)
        self.layers = layers

    def keys_values(self, encoder: Any, n: int) -> KeysValues:
        pairs = []
        for key_nPH, value_nPH in self.projected(encoder, self.dropout(self.states_of(n))):
            key = key_nPH.unflatten(2, (self.heads, -1)).transpose(1, 2)
            value = value_nPH.unflatten(2, (self.heads, -1)).transpose(1, 2)
            pairs.append((key, value))  # (n, A, P, d) each
        return pairs

    def states_of(self, n: int) -> Tensor:
        """Return the states of n equal prompts, (n, P, L, H)."""
        return self.table.view(self.length, self.layers, -1).expand(n, -1, -1, -1)

    def projected(self, encoder: Any, states_nPLH: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's keys and values of the states: (n, P, H) each."""
        by_layer = states_nPLH.to(computes_in(encoder)).unbind(2)
        pairs = []
        for layer, states_nPH in zip(layers_of(encoder), by_layer, strict=True):
            attention = layer.attention.self
            pairs.append((attention.key(states_nPH), attention.value(states_nPH)))
        return pairs

    def exported(self, encoder: Any) -> tuple[str, Tensor]:
        """Return a deep prefix: without dropout all sentences have the same keys and values."""
        with torch.no_grad():
            pairs = self.projected(encoder, self.states_of(1))
        return "deep", torch.cat([part[0] for pair in pairs for part in pair], dim=1)  # (P, 2LH)


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
        positions = read_config(backbone).get("max_position_embeddings")
        if isinstance(positions, int) and length > positions - SHORTEST:
            raise BenchError(
                f"prompt_length={length}: the backbone has {positions} positions for prompt and "
                "sentence"
            )
        check_not_causal(
            backbone,
            "a prompt",
            "the first token, which stands for the sentence, would see only the prompt",
            "take a backbone that reads both ways, such as BERT or RoBERTa",
        )
        if kind != "input-layer":
            check_layers(backbone, "a deep prompt", "take no keys and values from outside")
    try:
        possible = dropout is None or 0 <= float(dropout) < 1
    except ValueError:
        possible = False
    if not possible:
        raise BenchError(
            f"prefix_dropout={dropout}: expected a number from 0 to below 1, "
            "or none for the backbone's own"
        )


def check_gradients(recipe: Recipe, kind: str) -> None:
    """Raise BenchError for keys and values from outside if layers compute activations again:
    transformers then leaves them out.
    """
    if recipe.get("gradient_checkpointing") and kind != "input-layer":
        raise BenchError(
            "gradient_checkpointing=true: transformers leaves a prompt of keys and values "
            f"(prompt={kind}) out when it computes a layer again",
            "--set gradient_checkpointing=false; --chunk N bounds the memory of a batch",
        )


def prompt_for(
    backbone: Backbone, kind: str, length: int, dropout: Any = None
) -> Prefix | InputPrompt:
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
    sizes = config.num_hidden_layers, config.num_attention_heads, config.hidden_size, length, p
    if kind != "hidden":
        return DeepPrefix(*sizes, shared=kind == "layer-shared")
    family = FAMILIES.get(backbone.family)
    if family is None or not family.prefix:
        raise BenchError(
            f"prompt=hidden: {backbone.name} is a {backbone.family} model, and what its layers do "
            "to states before they make keys of them is not known",
            "--set prompt=deep, or a backbone of the BERT or RoBERTa family",
        )
    return HiddenPrefix(*sizes)
