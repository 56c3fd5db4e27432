"""Any ready-made encoder, nothing trained: its own library encodes.

A sentence-transformers folder or hub name is loaded and encoded by that library: with its pooling,
normalisation, prompts, maximum length and dimension. Any other checkpoint is loaded and tokenised
by transformers and pooled as ``--set pooling=`` says: a pooler's name, ``last`` for the last token
(a decoder's), or ``mlp`` for the stored head on CLS (what SimCSE's supervised checkpoints are
scored with; unsupervised ones are scored with ``cls``).

When a model is loaded, some texts are encoded in different company: if their vectors differ, every
text is encoded alone, and a line and the record say so.
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

from bench.backbones import load_without_encoder
from bench.backbones.folder import has_transformer, read_transformer_config
from bench.backbones.positions import check_max_length
from bench.backbones.sentence_transformer import (
    load_sentence_transformer,
    pooling_of,
    router_of,
    side_prompts,
    unused_prompts,
)
from bench.base.sides import DOCUMENT, SIDES
from bench.method import (
    Backbone,
    BenchError,
    Context,
    Features,
    Portable,
    Recipe,
    TorchMethod,
    Value,
    check_choice,
    pad,
)
from bench.method.answers import COMPANY, ask_probe
from bench.method.encoder_values import load_encoder
from bench.method.finished import FinishedEncoder
from bench.method.prompts import PLACE, Way, prompted
from bench.method.smaller import BINARY, FLOAT32, INT8, PRECISIONS, Smaller
from bench.method.whole_texts import encode_whole
from bench.methods.finished_encoder import (
    POOLINGS,
    check_pooling,
    default_prompt,
    kept_head,
    shorten,
    unused_prompts_line,
)
from bench.methods.pooling import POOLERS, last_token, masked_mean, portable_of

if TYPE_CHECKING:
    from bench.backbones import Reference

PROMPTS = {"prompt", "prompts", *(f"prompt_{side}" for side in SIDES)}
"""Recipe keys of prompts."""
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
UNLIMITED = 1 << 30  # tokens: no text is longer
FP32_COMPANY = 1e-3
"""The change of a float32 vector, as a fraction of its length, that is taken for rounding if other
sentences are in its batch.
"""


class Pretrained(FinishedEncoder, TorchMethod):
    """A ready-made encoder, scored as it is: nothing is trained.

    Take it to score a published model; :func:`bench.evaluate` and ``bench evaluate`` do.

    Example:
        bench evaluate sentence-transformers/all-MiniLM-L6-v2 --suite sts

    Relations: ``truncated`` keeps the first numbers of each vector; ``stored-prefix`` reads
    released PromCSE and DCPCSE checkpoints; ``cls``, ``last-avg`` and others pool an untrained
    encoder.
    """

    name = "pretrained"
    settings = ("none",)
    summary = "any ready-made encoder, scored as it is"
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
        "prompt_query": Value("", "the model's own for queries, if it has one"),
        "prompt_document": Value("", "the model's own for documents, if it has one"),
        "dimensions": Value(None, "all numbers of a vector; else the first ones"),
        "vector_precision": Value(FLOAT32, f"as they are; {INT8} and {BINARY} are smaller"),
        "dtype": Value("fp32", "what published scores are computed in"),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_pooling(recipe, backbone)
        if "dtype" in recipe:
            check_choice(recipe, "dtype", DTYPES)
        if "vector_precision" in recipe:
            check_choice(recipe, "vector_precision", PRECISIONS)
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
        return load_encoder(reference, recipe, context, dtype=recipe.get("dtype", "fp32"))

    def build(self, backbone: Backbone, recipe: Recipe) -> None:
        self.check(recipe, backbone.path)
        self.backbone, self.recipe = backbone, recipe
        self.text_prompt = recipe.get("prompt")
        self.pooling: str | None = {"mean": "avg"}.get(recipe.pooling, recipe.pooling)
        self.dtype = recipe.get("dtype", "fp32")
        self.own_prompts: dict[str, str] = {}
        self.router: Any = None  # of a sentence-transformers model, if it has one
        self.alone = False  # each text is encoded without company
        if self.pooling is None:
            self._load_sentence_transformer(backbone)
        else:
            self.encoder = backbone.encoder
            if self.pooling == "mlp":
                self.head = kept_head(backbone)
        backbone.encoder = self.encoder  # one copy of the weights
        self._inputs = signature(self.encoder.forward).parameters.keys()
        if getattr(getattr(self.encoder, "config", None), "use_cache", False):
            self.encoder.config.use_cache = False  # of keys and values, which only generating needs
        self.to(DTYPES[self.dtype])
        self.to(self.context.device).eval()
        self._check_prompts()
        self._ask_probe()

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
            self.side_prompts = side_prompts(self.whole)
        self.router = router_of(self.whole)
        differ = any(prompt != self.text_prompt for prompt in self.side_prompts.values())
        self.tells_sides = differ or self.router is not None
        if not PROMPTS & self.recipe.keys():
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

    @property
    def _library_name(self) -> str:
        return "transformers" if self.pooling is not None else "sentence-transformers"

    @property
    def _counts_tokens(self) -> bool:
        """True if the tokenizer is one of transformers'; word vectors have another, or none."""
        return hasattr(self.backbone.tokenizer, "backend_tokenizer")

    @property
    def _room(self) -> int:
        """The tokens of a text at most, without special ones."""
        before, after = self.backbone.special_tokens()
        return self.longest - len(before) - len(after)

    def _check_prompts(self) -> None:
        """Raise BenchError if a prompt leaves no room for a sentence."""
        if not self._counts_tokens:
            return
        by_task = json.loads(self.recipe.get("prompts") or "{}")
        by_side = [self.recipe.get(f"prompt_{side}") or "" for side in SIDES]
        own = [self.text_prompt or "", *self.side_prompts.values()]
        for prompt in dict.fromkeys([*own, *by_task.values(), *by_side]):
            (ids,) = self.backbone.ids([prompt.replace(PLACE, "")])
            if ids and len(ids) >= self._room:
                raise BenchError(
                    f"the prompt {shorten(prompt)} has {len(ids)} tokens, "
                    f"and {self.backbone.name} takes {self._room}: nothing of a sentence is read",
                    "give a shorter one, or a larger --set max_length= if the model has the "
                    "positions",
                )

    def _ask_probe(self) -> None:
        """Encode some texts in different company; encode every text alone if that changes vectors.

        Raises BenchError if the library cannot encode them.
        """
        company = FP32_COMPANY if self.dtype == "fp32" else COMPANY
        way = Way(side=DOCUMENT if self._needs_side else None)
        try:
            # NaN is reported where it is scored
            self.answers = ask_probe(
                lambda texts: np.nan_to_num(self.encode_with(way, texts)), company
            )
        except BenchError:
            raise
        except Exception as error:  # the library may raise any exception
            line = " ".join(str(error).split())[:200] or type(error).__name__
            raise BenchError(
                f"{self.backbone.name} cannot be encoded by its own library, "
                f"{self._library_name}: {line}",
                "load it in Python and score the object: bench.evaluate(model, ...), "
                "docs/evaluate.md",
            ) from error
        self.dimension = self.answers.vectors.shape[1]
        name = self.backbone.name
        if not self.answers.repeat:
            self.context.reporter.note(
                f"{name}: the same sentences get other vectors at each call, "
                "so its scores will not repeat"
            )
        elif not self.answers.independent:
            self.alone = True
            self.context.reporter.note(
                f"{name}: the vector of a sentence depends on the padding or the other sentences "
                "of its batch, so each is encoded alone, which is slower"
            )

    @property
    def _needs_side(self) -> bool:
        """True if it encodes nothing but queries and documents."""
        return self.router is not None and self.router.default_route is None

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        if self._needs_side and self.side is None:
            raise BenchError(
                f"{self.backbone.name} encodes queries and documents alone: its router has no "
                "default route",
                "score it on retrieval, or on pairs whose description says which column is which",
            )
        embed = self._by_transformers
        if self.pooling is None:
            embed = self._by_sentence_transformers
        return encode_whole(self, sentences, lengths=self._lengths, embed=embed, alone=self.alone)

    def _lengths(self, sentences: list[str]) -> list[int]:
        """Return the number of tokens of each sentence, or of characters for word vectors."""
        texts = prompted(self.text_prompt, sentences)
        if not self._counts_tokens:
            return [len(text) for text in texts]
        return [min(len(ids), self.longest) for ids in self.backbone.ids(texts)]

    def _by_sentence_transformers(self, sentences: list[str]) -> np.ndarray:
        """Return one batch of the library's ``encode``, (n, d) float32."""
        prompt, texts = self.text_prompt or "", list(sentences)
        if PLACE in prompt:  # the library knows no templates
            prompt, texts = "", self._filled(sentences)
        has_ends = self._counts_tokens and bool(self.backbone.tokenizer("")["input_ids"])
        if not has_ends and not any(text.strip() for text in texts):
            # alone, texts without a token make a batch without a column, which many models
            # cannot read
            texts.append("a")
        encode = getattr(self.whole, "encode" if self.side is None else f"encode_{self.side}")
        vectors = encode(texts, prompt=prompt, batch_size=len(texts), show_progress_bar=False)
        return np.asarray(vectors[: len(sentences)], dtype=np.float32)

    def _by_transformers(self, sentences: list[str]) -> np.ndarray:
        """Return the pooled states of one batch, (n, d) float32."""
        features = self.assemble_texts(self._filled(sentences))
        device = next(self.parameters()).device
        vectors = self.embed({key: value.to(device) for key, value in features.items()})
        return vectors.float().cpu().numpy()

    def _filled(self, sentences: list[str]) -> list[str]:
        """Put the prompt around each sentence.

        A sentence that is too long loses its own end, not the part of the template behind it.
        """
        texts = prompted(self.text_prompt, sentences)
        prompt = self.text_prompt or ""
        if PLACE not in prompt or prompt.endswith(PLACE) or not self._counts_tokens:
            return texts
        room = self._room
        for number, ids in enumerate(self.backbone.ids(texts)):
            if len(ids) > room:
                texts[number] = self._cut(sentences[number], room)
        return texts

    def _cut(self, sentence: str, room: int) -> str:
        """Return the prompt around as much of the sentence's beginning as fits."""
        (words,) = self.backbone.ids([sentence])
        kept = len(words)
        (text,) = prompted(self.text_prompt, [sentence])
        (ids,) = self.backbone.ids([text])
        while len(ids) > room and kept:
            kept = max(0, kept - (len(ids) - room))
            (text,) = prompted(self.text_prompt, [self.backbone.tokenizer.decode(words[:kept])])
            (ids,) = self.backbone.ids([text])
        return text

    def assemble_texts(self, texts: list[str]) -> Features:
        """Turn texts into features as the checkpoint's tokenizer has them, cut as it cuts."""
        rows = self.backbone.tokenizer(
            texts, truncation=True, max_length=self.longest, verbose=False
        )
        features = pad(rows["input_ids"], self.pad_id)
        if "token_type_ids" in rows and "token_type_ids" in self._inputs:
            features["token_type_ids"] = pad(rows["token_type_ids"], 0)["input_ids"]
        return features

    def embed(self, features: Features) -> Tensor:
        vectors = self._pooled(features)
        # a text without a token has the zero vector
        is_text = features["attention_mask"].any(1, keepdim=True)
        return torch.where(is_text, vectors, torch.zeros_like(vectors))

    def _pooled(self, features: Features) -> Tensor:
        # an encoder without position_ids counts by the mask, or has only distances
        inputs = {key: value for key, value in features.items() if key in self._inputs}
        if self.pooling in ("mlp", "last", "avg"):
            last = self.encoder(**inputs).last_hidden_state
            mask = features["attention_mask"]
            if self.pooling == "mlp":
                return self.head(last[:, 0])
            if self.pooling == "last":
                return last_token(last, mask)
            return masked_mean(last.float(), mask)
        assert self.pooling is not None  # its own library pools a folder that says how
        states = self.encoder(**inputs, output_hidden_states=True).hidden_states
        return POOLERS[self.pooling](states, features["attention_mask"])

    def about(self) -> dict[str, Any]:
        """Describe the encoder for the record."""
        parts: list[str] = []
        pooling = {"avg": "mean"}.get(self.pooling or "", self.pooling)
        if self.pooling is None:
            parts = [type(part).__name__ for part in self.whole]
            pooling = pooling_of(self.whole)
        facts: dict[str, Any] = {
            "pooling": pooling,
            "modules": parts,
            "dtype": self.dtype,
            "max_tokens": None if self.longest == UNLIMITED else self.longest,
            "prompt": self.text_prompt or "",
            "prompts": json.loads(self.recipe.get("prompts") or "{}"),
            **self.facts_of_sides(),
            "padding": "right",
        }
        if not self.answers.repeat:
            facts["repeats"] = False
        elif not self.answers.independent:
            facts["independent"] = False
        if self.backbone.note:
            facts["token_ids"] = self.backbone.note
        if self.own_prompts:
            facts["unused_prompts"] = self.own_prompts
        return facts

    def portable(self) -> Portable:
        if Smaller.of(self.recipe) is not None:
            raise BenchError(
                "this run's vectors are made smaller, and an export has the whole ones",
                "export the run with whole vectors",
            )
        if PROMPTS & self.recipe.keys() or self.pooling == "last":
            reason = "pools the last token" if self.pooling == "last" else "has a prompt of its own"
            raise BenchError(f"this run {reason}, which an export does not carry yet")
        if self.pooling is None:
            return Portable(
                tokenizer=self.backbone.tokenizer, max_tokens=self.limit, write=self.write
            )
        if self.pooling == "mlp":
            return portable_of(self, "cls", self.head, max_tokens=self.recipe.max_length)
        return portable_of(self, self.pooling, max_tokens=self.recipe.max_length)

    def write(self, folder: Path) -> None:
        """Write the sentence-transformers model, in float32 and with this maximum length."""
        self.whole.save(str(folder), create_model_card=False)
