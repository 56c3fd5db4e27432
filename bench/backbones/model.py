"""A backbone in memory: encoder and tokenizer, and its masked-language-modelling head on request.

Shapes: n rows, T tokens, H hidden size, V vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.backbones.direction import reads_ahead
from bench.backbones.families import FAMILIES, check_mlm_head, family_title, without_base
from bench.backbones.folder import weight_files
from bench.backbones.mlm_head import MaskedLM, head_of
from bench.backbones.positions import first_position, longest_text
from bench.backbones.tensors import tensor_names, tensors_of
from bench.base.errors import BenchError, NotAModel

TOKENIZING = threading.Lock()
"""Held while a tokenizer works: batches are made in another thread than dev scores, and tokenizers
before 0.23 fail if two threads use one.
"""
PROBE = ["A word, or two.", " Ünïcode  中文, \U0001f600\t[SEP] </s> <mask> ", "", "x" * 3000]


@dataclass(kw_only=True)
class Backbone:
    """A pretrained encoder, ready to use, with everything that names it again.

    Shapes: n rows, T tokens, H hidden size, V vocabulary.

    Attributes:
        name: The hub name or the folder.
        revision: A hub commit, or the sha256 of the weights of a folder.
        family: transformers' model_type: "bert", "roberta", ...
        encoder: A transformers.PreTrainedModel without a pooling layer, float32.
        tokenizer: A transformers.PreTrainedTokenizerBase, fast.
        path: The folder of its files.
        weights: The folder of the checkpoint, if it is not ``path`` itself.
        trained: The checkpoint of the run that fine-tuned it.
        unused: Tensors of the checkpoint's heads, which are not read.
        note: A line about its token ids, if they differ from tokenizer.json's.
    """

    name: str
    revision: str
    family: str
    encoder: Any
    tokenizer: Any
    path: Path
    weights: Path | None = None
    trained: Path | None = None
    unused: tuple[str, ...] = ()
    note: str = ""

    @property
    def hidden_size(self) -> int:
        """The width of the encoder's states."""
        return int(self.encoder.config.hidden_size)

    @property
    def embedding_size(self) -> int:
        """The width of word embeddings: the hidden size, except for small ELECTRA models."""
        return int(self.encoder.get_input_embeddings().embedding_dim)

    @cached_property
    def reads_ahead(self) -> bool:
        """True if the first token's state depends on later tokens; False for a causal model."""
        return reads_ahead(self.encoder)

    # both are read once: they are on the encoder's device, and each step would wait for a GPU
    @cached_property
    def first_position(self) -> int:
        """The position id of a sentence's first token: 0 for BERT, padding_idx + 1 for RoBERTa."""
        return first_position(self.encoder)

    @cached_property
    def max_tokens(self) -> int:
        """The number of positions that a sentence may fill, special tokens included."""
        return longest_text(self.encoder)

    def report(self) -> str:
        """Return one line about the weights that were read and left out, and the tokenizer."""
        count = sum(p.numel() for p in self.encoder.parameters())
        heads = sorted({without_base(name).split(".")[0] for name in self.unused})
        line = f"{self.name} at {self.revision[:12]}: "
        if self.family:
            line += f"{family_title(self.family)}, {count:,} parameters loaded, none missing"
        else:  # no transformer: its own library has read it
            line += f"{count:,} weights"
        if heads:
            line += f"; ignored: {', '.join(heads)}"
        if self.note:
            line += f"; {self.note}"
        return line

    @property
    def mask_id(self) -> int:
        """The id of the mask token.

        Raises:
            BenchError: If the tokenizer has none.
        """
        if self.tokenizer.mask_token_id is None:
            raise BenchError(
                f"the tokenizer of '{self.name}' has no mask token",
                "take a backbone that was trained with one",
            )
        return int(self.tokenizer.mask_token_id)

    def special_tokens(self) -> tuple[list[int], list[int]]:
        """Return the ids before and after one sentence: ([CLS], [SEP]) for BERT.

        Raises:
            BenchError: If the tokenizer does not wrap a sentence in special tokens.
        """
        inner = self.tokenizer("a", add_special_tokens=False)["input_ids"]
        whole = self.tokenizer("a", add_special_tokens=True)["input_ids"]
        for start in range(len(whole) - len(inner) + 1):
            if whole[start : start + len(inner)] == inner:
                return whole[:start], whole[start + len(inner) :]
        raise BenchError(
            f"the tokenizer of '{self.name}' does not wrap a sentence in special tokens"
        )

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Tokenise sentences.

        Args:
            sentences: n texts.

        Returns:
            Each sentence's ids, without special tokens and not cut.
        """
        texts = list(sentences)
        with TOKENIZING:
            return self._backend_ids(texts) if self._plain else self._tokenizer_ids(texts)

    def encodings(self, texts: Sequence[str]) -> list[Any]:
        """Tokenise texts, with the place of each token.

        Args:
            texts: n texts.

        Returns:
            Each text's encoding with special tokens, not cut. ``ids`` are its tokens, ``offsets``
            the characters of each token.
        """
        if not texts:
            return []
        with TOKENIZING:
            return list(self.tokenizer(list(texts), verbose=False).encodings)

    def _tokenizer_ids(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        ids: list[list[int]] = self.tokenizer(texts, add_special_tokens=False, verbose=False)[
            "input_ids"
        ]
        return ids

    def _backend_ids(self, texts: list[str]) -> list[list[int]]:
        """Encode with the tokenizer's backend, more than twice as fast (benchmarks/tokenising.py).

        transformers also wraps the offsets and masks of every sentence.
        """
        backend = self.tokenizer.backend_tokenizer
        backend.no_truncation()  # which a tokenizer.json may ask for
        backend.no_padding()
        backend.encode_special_tokens = bool(getattr(self.tokenizer, "split_special_tokens", False))
        return [row.ids for row in backend.encode_batch_fast(texts, add_special_tokens=False)]

    @cached_property
    def _plain(self) -> bool:
        """True if transformers' tokenizer gives the ids of its backend, as in most families."""
        return self._backend_ids(PROBE) == self._tokenizer_ids(PROBE)

    def pooling_layer(self) -> tuple[Tensor, Tensor] | None:
        """Read the dense layer with tanh on the first token.

        It is the one that a model folder stores (the trained head in a published SimCSE model), or
        the head that a run trained.

        Returns:
            Weight (H, H) and bias (H,), float32. None without one.
        """
        if self.trained:
            layer, files = ".head.dense.weight", [self.trained]
        else:
            layer, files = ".pooler.dense.weight", self._weight_files()
        for file in files:
            for name in tensor_names(file):
                if f".{name}".endswith(layer):
                    tensors = tensors_of(file, name.removesuffix("weight"))
                    return tensors["weight"].float(), tensors["bias"].float()
        return None

    def stored(self, beginning: str) -> dict[str, Tensor]:
        """Read the checkpoint's tensors with names that begin with ``beginning``.

        Args:
            beginning: "mlp." of a SimCSE class gives "dense.weight" and "dense.bias".

        Returns:
            The rest of each name -> its tensor in float32.

        Raises:
            NotAModel: If the checkpoint is damaged.
        """
        found: dict[str, Tensor] = {}
        for file in self._weight_files():
            for name, tensor in tensors_of(file, beginning).items():
                found[name] = tensor.float()
        return found

    def _weight_files(self) -> list[Path]:
        files = weight_files(self.weights or self.path)
        return [file for file in files if file.is_file()]

    def mlm_head(self) -> nn.Module:
        """Return a new copy of the pretrained MLM head: states (..., H) -> logits (..., V).

        It is in float32. Its decoder matrix is a separate parameter that starts as the word
        embeddings, as in SimCSE's code, which does not tie the two; or as the checkpoint's own
        matrix, if its config does not tie it to them.

        Raises:
            BenchError: If the checkpoint has no head, or if the family's head is not known here.
        """
        model = self._masked_lm()
        head = head_of(model, self.family)
        words = self.encoder.get_input_embeddings().weight
        if not getattr(model.config, "tie_word_embeddings", True):
            words = head.decoder.weight
        head.decoder.weight = nn.Parameter(words.detach().clone().float())
        return head.train()  # type: ignore[no-any-return]

    def lm_matrix(self) -> Tensor:
        """Return the matrix (V, H) with which a decoder predicts the next token, in float32.

        It is a copy of the head's own matrix, or of the word embeddings, if these serve as the
        head.

        Raises:
            BenchError: If the family is not known to have such a head.
        """
        family = FAMILIES.get(self.family)
        if family is None or not family.lm_head:
            raise BenchError(
                f"{self.name} has no language-modelling head that is known here",
                "take a decoder: docs/backbones.md lists them",
            )
        own = self.stored(family.lm_head).get("weight")
        if own is not None:
            return own
        words: Tensor = self.encoder.get_input_embeddings().weight
        return words.detach().clone().float()

    def masked_lm(self, other: Backbone | None = None) -> MaskedLM:
        """Load a whole pretrained masked language model, frozen.

        Args:
            other: The backbone whose model it is. None: this one.

        Returns:
            The model, encoder and head.

        Raises:
            BenchError: If there is none, or if the two have different vocabularies.
        """
        other = other or self
        if len(other.tokenizer) != len(self.tokenizer) or other.ids(PROBE) != self.ids(PROBE):
            raise BenchError(
                f"{other.name} and {self.name} have different vocabularies",
                f"name a model with the tokenizer of {self.name}, or none: then its own MLM is "
                "used",
            )
        return MaskedLM(other._masked_lm())

    def _masked_lm(self) -> Any:
        """Load transformers' model in float32. Raises NotAModel if the checkpoint has no head."""
        from transformers import AutoModelForMaskedLM

        folder = self.weights or self.path
        check_mlm_head(folder)
        try:
            model, info = AutoModelForMaskedLM.from_pretrained(
                folder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
            )
        except Exception as error:  # transformers raises many kinds
            raise NotAModel(
                f"{self.name} cannot be loaded as a masked language model: {error}"
            ) from None
        missing = sorted(key for key in info["missing_keys"] if "decoder" not in key)
        if missing:
            raise NotAModel(
                f"{self.name} has no MLM head ({missing[0]} is missing)",
                "take a pretrained BERT or RoBERTa, or builtin",
            )
        return model
