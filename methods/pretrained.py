"""Any finished encoder, nothing trained.

A sentence-transformers folder or hub name is loaded by that library and keeps its own pooling,
normalisation, maximum length and dimension. Any other checkpoint is pooled as ``--set pooling=``
says: a pooler's name, ``last`` for the last token (a decoder's), or ``mlp`` for the stored head on
CLS (what SimCSE's supervised checkpoints are scored with; unsupervised ones are scored with
``cls``).

When a model is loaded, some texts are encoded by its own library and here
(:mod:`bench.methods.library_path`): if the vectors differ by more than rounding, the library
encodes all texts, and a line and the record say so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from bench.method import (
    PLACE,
    Affine,
    Backbone,
    BenchError,
    Context,
    Features,
    Ids,
    Interrupted,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    check_max_length,
    has_transformer,
    load_sentence_transformer,
    load_without_encoder,
    prompted,
    read_transformer_config,
    unused_prompts,
)
from bench.methods.finished_encoder import (
    POOLINGS,
    NoTransformer,
    PromptTooLong,
    check_padding,
    check_pooling,
    default_prompt,
    encode_by_library,
    own_pooling,
    unpadded,
    unused_prompts_line,
    with_a_column,
    with_pooling_layer,
)
from bench.methods.library_path import (
    difference_of_vectors,
    first_other_ids,
    long_text,
    shorten,
    texts_to_encode,
)
from bench.methods.padding import on_the_left
from bench.methods.pooling import POOLERS, last_token, masked_mean, portable_of

if TYPE_CHECKING:
    from bench.method import Reference

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
UNLIMITED = 1 << 30  # tokens: no text is longer
BLOCK = 1024  # sentences that a library encodes at once: the user may stop between two blocks


class Pretrained(TorchMethod):
    """A finished encoder, scored as it is: nothing is trained.

    Take it to score a published model; :func:`bench.evaluate` and ``bench evaluate`` do.

    Example:
        bench evaluate sentence-transformers/all-MiniLM-L6-v2 --suite sts

    Relations: ``truncated`` keeps the first numbers of each vector; ``stored-prefix`` reads
    released PromCSE and DCPCSE checkpoints; ``cls``, ``last-avg`` and others pool an untrained
    encoder.
    """

    name = "pretrained"
    settings = ("none",)
    summary = "any finished encoder, as its folder says or --set pooling="
    deterministic = ("none",)
    defaults = {
        "pooling": Value(
            None,
            "the folder's own",
            f"for a plain transformers checkpoint: {', '.join(sorted(POOLINGS))}",
        ),
        "max_length": Value(None, "the model's own limit"),
    }
    optional = {
        "prompt": Value("", "the model's own, if it has one"),
        "prompts": Value("", "none: every task has the same"),
        "padding": Value(
            "right",
            "as the others here",
            "many decoders' own code pads on the left: the same vectors, but for rounding",
        ),
        "dtype": Value("fp32", "what published scores are computed in"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_pooling(recipe, backbone)
        if "dtype" in recipe:
            check_choice(recipe, "dtype", DTYPES)
        check_padding(recipe)
        if backbone is not None:
            check_max_length(recipe.max_length, read_transformer_config(backbone), str(backbone))

    @classmethod
    def read_backbone(cls, reference: Reference, recipe: Recipe, context: Context) -> Any:
        if recipe.pooling is None and reference.trained is not None:
            raise BenchError(
                f"{reference.name} is a run: its encoder was trained further, "
                "and it does not say how to pool",
                f"bench evaluate {reference.name} scores the run itself; or --set pooling=",
            )
        if (
            recipe.pooling is None
            and reference.path is not None
            and not has_transformer(reference.path)
        ):
            return load_without_encoder(reference, offline=context.offline)
        return super().read_backbone(reference, recipe, context)

    @classmethod
    def dtype_of_weights(cls, recipe: Recipe) -> str:
        return str(recipe.get("dtype", "fp32"))

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        self.check(recipe, backbone.path)
        self.backbone, self.recipe = backbone, recipe
        self.text_prompt = recipe.get("prompt")
        self.pooling: str | None = {"mean": "avg"}.get(recipe.pooling, recipe.pooling)
        self.dtype = recipe.get("dtype", "fp32")
        self.own_prompts: dict[str, str] = {}
        # if the model's library encodes: how bench's own path differs; "" if bench encodes
        self.library = ""
        # rows of ids are transformers' own, with special tokens and cut
        self._cut_by_library = False
        if self.pooling is None:
            self._load_sentence_transformer(backbone)
        else:
            self.encoder = backbone.encoder
            if self.pooling == "mlp":
                self.encoder = with_pooling_layer(backbone)
        backbone.encoder = self.encoder  # one copy of the weights
        self._takes_positions = "position_ids" in signature(self.encoder.forward).parameters
        if getattr(getattr(self.encoder, "config", None), "use_cache", False):
            self.encoder.config.use_cache = False  # of keys and values, which only generating needs
        self.to(DTYPES[self.dtype])
        self.to(self.context.device).eval()
        with torch.inference_mode():
            self._choose_path()

    def _load_sentence_transformer(self, backbone: Backbone) -> None:
        # float32 even if the weights are stored in half precision, unless another is asked for:
        # published scores are computed in it
        loaded = load_sentence_transformer(backbone, DTYPES[self.dtype], self.recipe.max_length)
        self.whole, self.limit = loaded.model, loaded.limit
        self.encoder = self.whole if loaded.transformer is None else loaded.transformer
        backbone.tokenizer = getattr(self.whole[0], "tokenizer", None)
        backbone.note = loaded.token_note
        for line in loaded.notes:
            self.context.reporter.note(line)
        if self.text_prompt is None:
            self.text_prompt = default_prompt(self.whole)
        if not {"prompt", "prompts"} & self.recipe.keys():
            self._mention_prompts()

    def _mention_prompts(self) -> None:
        """Print one line about the prompts that the folder names and that are not used."""
        self.own_prompts = unused_prompts(self.whole, self.text_prompt or "")
        if self.own_prompts:
            self.context.reporter.note(unused_prompts_line(self.backbone.name, self.own_prompts))

    @property
    def longest(self) -> int:
        """The tokens of a text at most, special ones included; longer texts are cut."""
        if self.pooling is None:
            return UNLIMITED if self.limit is None else int(self.limit)
        return int(self.recipe.max_length or self.backbone.max_tokens)

    def _choose_path(self) -> None:
        """Compare bench's own path with the library's, and take the library's if they differ."""
        try:
            if self.encoder is getattr(self, "whole", None):
                raise NoTransformer(f"it begins with a {type(self.whole[0]).__name__}")
            self.before, self.after = self.backbone.special_tokens()
            self._check_prompts()
            self.library = self._difference()
        except PromptTooLong:
            raise
        except Exception as error:
            # this path cannot encode what the library may: a model without token ids, or without a
            # fast tokenizer
            line = " ".join(str(error).split())[:80] or type(error).__name__
            self.library = f"no vectors ({line})"
        if self.library and self.pooling is not None and not self._cut_by_library:
            self._take_library_ids()
        if self.library:
            self._check_library()
            self.context.reporter.note(
                f"{self.backbone.name} is encoded by {self._library_name} itself, "
                f"which is slower: bench's own path gives {self.library}"
            )

    def _take_library_ids(self) -> None:
        """Use the ids of transformers' own call of the tokenizer, for a plain checkpoint.

        All else is unchanged; if the vectors still differ, nothing changes.
        """
        reason = self.library
        before, after = self.before, self.after
        self._cut_by_library = True
        self.before, self.after = [], []
        try:
            self.library = self._difference()
        except Exception:  # the reason is known already
            self.library = reason
        if self.library:
            self._cut_by_library = False
            self.before, self.after = before, after
            return
        self.backbone.note = (
            f"tokenised and cut by transformers' own tokenizer, bench's own way gives {reason}"
        )

    @property
    def _library_name(self) -> str:
        return "transformers" if self.pooling is not None else "sentence-transformers"

    def _check_prompts(self) -> None:
        """Raise PromptTooLong if a prompt leaves no room for a sentence."""
        for prompt in self._prompts():
            ids = super().token_ids([prompt.replace(PLACE, "")])[0]
            room = self.longest - len(self.before) - len(self.after)
            if len(ids) >= room:
                raise PromptTooLong(
                    f"the prompt {shorten(prompt)} has {len(ids)} tokens, "
                    f"and {self.backbone.name} takes {room}: nothing of a sentence is read",
                    "give a shorter one, or a larger --set max_length= if the model has the "
                    "positions",
                )

    def _check_library(self) -> None:
        """Raise BenchError if the library cannot encode either."""
        try:
            self.dimension = self._by_library(texts_to_encode()).shape[1]
        except Exception as error:  # the library may raise any exception
            line = " ".join(str(error).split())[:200]
            raise BenchError(
                f"{self.backbone.name} cannot be encoded by its own library: {line}",
                "load it in Python and score the object: bench.evaluate(model, ...), "
                "docs/evaluate.md",
            ) from error

    def _difference(self) -> str:
        """Describe the difference of bench's own path from the library's; "" if there is none."""
        for prompt in self._prompts():
            before, self.text_prompt = self.text_prompt, prompt
            try:
                difference = self._difference_with_prompt()
            finally:
                self.text_prompt = before
            if difference:
                return difference
        return ""

    def _prompts(self) -> list[str]:
        """Return the method's prompt and the tasks' prompts, each once."""
        by_task = json.loads(self.recipe.get("prompts") or "{}")
        return list(dict.fromkeys([self.text_prompt or "", *by_task.values()]))

    def _difference_with_prompt(self) -> str:
        texts = texts_to_encode()
        if PLACE in (self.text_prompt or ""):
            # a text that is too long loses its sentence's end here, the template's end there
            texts = [text for text in texts if len(self._own_ids(text)) < self.longest]
            all_texts = list(texts)
        else:
            all_texts = [*texts, long_text(None if self.longest == UNLIMITED else self.longest)]
        other = first_other_ids(self._own_ids, self._library_ids, all_texts)
        if other is not None:
            return f"other token ids, the first for {shorten(other)}"
        ours, theirs = self._by_bench(texts), self._by_library(texts)
        self.dimension = theirs.shape[1]
        return difference_of_vectors(ours, theirs, texts, self.dtype)

    def _own_ids(self, text: str) -> list[int]:
        return unpadded(self.assemble(self.token_ids([text])))

    def _library_ids(self, text: str) -> list[int]:
        if self.pooling is None:
            given, prompt = self._prompt_for_library([text])
            return unpadded(self.whole.preprocess(given, prompt=prompt))
        return self._ids_by_transformers([text])[0]

    def _ids_by_transformers(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows of a plain checkpoint's tokenizer, special tokens included, cut as it
        cuts.
        """
        given = prompted(self.text_prompt, texts)
        if not given:
            return []
        ids: list[list[int]] = self.backbone.tokenizer(
            given, truncation=True, max_length=self.longest, verbose=False
        )["input_ids"]
        return ids

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        if not self.library:
            return super().encode(sentences)
        distinct = sorted(set(sentences), key=lambda sentence: (-len(sentence), sentence))
        parts = [np.zeros((0, 0), dtype=np.float32)] if not distinct else []
        for start in range(0, len(distinct), BLOCK):
            if self.context.should_stop():
                raise Interrupted(
                    f"stopped after encoding {start} of {len(distinct)} sentences; "
                    "the same command encodes them again"
                )
            block = distinct[start : start + BLOCK]
            with torch.inference_mode():
                parts.append(self._by_library(block))
            self.context.reporter.advance(start + len(block), total=len(distinct))
        vectors = np.concatenate(parts)
        row_of = {sentence: row for row, sentence in enumerate(distinct)}
        return vectors[[row_of[sentence] for sentence in sentences]]

    def _by_library(self, texts: list[str]) -> np.ndarray:
        """Encode texts as the model's own library does, (n, d) float32."""
        if self.pooling is None:
            return self._by_sentence_transformers(texts)
        rows = [self._embedded(self._features([self._library_ids(text)])) for text in texts]
        return np.concatenate(rows)

    def _by_sentence_transformers(self, texts: list[str]) -> np.ndarray:
        given, prompt = self._prompt_for_library(texts)
        return encode_by_library(self.whole, given, prompt)

    def _prompt_for_library(self, texts: list[str]) -> tuple[list[str], str]:
        """Return the texts and the prompt for sentence-transformers, which puts it before them.

        A template is filled first.
        """
        if self.text_prompt and PLACE in self.text_prompt:
            return prompted(self.text_prompt, texts), ""
        return texts, self.text_prompt or ""

    def _by_bench(self, texts: list[str]) -> np.ndarray:
        """Encode texts in one batch by bench's own path, (n, d) float32."""
        return self._embedded(self.assemble(self.token_ids(texts)))

    def _embedded(self, features: Features) -> np.ndarray:
        device = next(self.parameters()).device
        vectors = self.embed({key: value.to(device) for key, value in features.items()})
        return vectors.float().cpu().numpy()

    def _features(self, ids: Sequence[Ids]) -> Features:
        """Turn whole rows, special tokens included, into features."""
        before, after = self.before, self.after
        self.before, self.after = [], []
        try:
            return with_a_column(super().assemble(ids, UNLIMITED), self.pad_id)
        finally:
            self.before, self.after = before, after

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the ids of each sentence with the prompt around it.

        A sentence that is too long loses its own end, not the part of the template behind it.
        """
        if self._cut_by_library:
            return self._ids_by_transformers(sentences)
        ids = super().token_ids(prompted(self.text_prompt, sentences))
        if self.text_prompt and not self.text_prompt.endswith(PLACE) and PLACE in self.text_prompt:
            room = self.longest - len(self.before) - len(self.after)
            for number, sentence in enumerate(sentences):
                if len(ids[number]) > room:
                    ids[number] = self._cut(sentence, room)
        return ids

    def _cut(self, sentence: str, room: int) -> list[int]:
        """Return the ids of the prompt around as much of the sentence's beginning as fits."""
        words = super().token_ids([sentence])[0]
        kept = len(words)
        row = super().token_ids(prompted(self.text_prompt, [sentence]))[0]
        while len(row) > room and kept:
            kept = max(0, kept - (len(row) - room))
            shorter = self.backbone.tokenizer.decode(words[:kept])
            row = super().token_ids(prompted(self.text_prompt, [shorter]))[0]
        return row

    def assemble(self, ids: Sequence[Ids], max_length: int | None = None) -> Features:
        if self.pooling is None:
            return with_a_column(super().assemble(ids, self.longest), self.pad_id)
        features = with_a_column(super().assemble(ids, max_length or self.longest), self.pad_id)
        if self.recipe.get("padding") != "left":
            return features
        features = on_the_left(features, self.backbone.first_position)
        if not self._takes_positions:  # it counts by the mask, or has only distances
            del features["position_ids"]
        return features

    def embed(self, features: Features) -> Tensor:
        vectors = self._pooled(features)
        if self.pooling is None:
            return vectors
        # a text without a token has the zero vector
        is_text = features["attention_mask"].any(1, keepdim=True)
        return torch.where(is_text, vectors, torch.zeros_like(vectors))

    def _pooled(self, features: Features) -> Tensor:
        if self.pooling is None:
            inputs: dict[str, Any] = dict(features)
            if self.text_prompt and PLACE not in self.text_prompt:
                prompt = super().token_ids([self.text_prompt])[0]
                inputs["prompt_length"] = len(self.before) + len(prompt)
            embedded: Tensor = self.whole(inputs)["sentence_embedding"]
            return embedded[:, : self.whole.truncate_dim]
        if self.pooling == "mlp":
            head: Tensor = self.encoder(**features).pooler_output
            return head
        if self.pooling in ("last", "avg"):
            last = self.encoder(**features).last_hidden_state
            mask = features["attention_mask"]
            if self.pooling == "last":
                return last_token(last, mask)
            return masked_mean(last.float(), mask)
        states = self.encoder(**features, output_hidden_states=True).hidden_states
        return POOLERS[self.pooling](states, features["attention_mask"])

    def about(self) -> dict[str, Any]:
        """Describe the encoder for the record."""
        parts: list[str] = []
        pooling = {"avg": "mean"}.get(self.pooling or "", self.pooling)
        if self.pooling is None:
            parts = [type(part).__name__ for part in self.whole]
            pooling = own_pooling(self.whole)
        facts: dict[str, Any] = {
            "pooling": pooling,
            "modules": parts,
            "dtype": self.dtype,
            "max_tokens": None if self.longest == UNLIMITED else self.longest,
            "prompt": self.text_prompt or "",
            "prompts": json.loads(self.recipe.get("prompts") or "{}"),
            "padding": self.recipe.get("padding", "right"),
        }
        if self.library:
            facts["encoded_by"] = self._library_name
            facts["own_path_gives"] = self.library
        if self.backbone.note:
            facts["token_ids"] = self.backbone.note
        if self.own_prompts:
            facts["unused_prompts"] = self.own_prompts
        return facts

    def portable(self) -> Portable:
        if "prompt" in self.recipe or "prompts" in self.recipe or self.pooling == "last":
            reason = "pools the last token" if self.pooling == "last" else "has a prompt of its own"
            raise BenchError(
                f"this run {reason}, which an export does not carry yet",
                "in Python bench.load_run(RUN).encode gives its vectors",
            )
        if self.pooling is None:
            return Portable(
                tokenizer=self.backbone.tokenizer, max_tokens=self.limit, write=self.write
            )
        if self.pooling != "mlp":
            return portable_of(self, self.pooling, max_tokens=self.recipe.max_length)
        dense = self.encoder.pooler.dense
        return portable_of(
            self,
            "cls",
            Affine(dense.weight, dense.bias, tanh=True),
            max_tokens=self.recipe.max_length,
        )

    def write(self, folder: Path) -> None:
        """Write the sentence-transformers model, in float32 and with this maximum length."""
        self.whole.save(str(folder), create_model_card=False)
