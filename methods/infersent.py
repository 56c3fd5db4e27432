"""InferSent: Supervised Learning of Universal Sentence Representations from Natural Language
Inference Data (Conneau, Kiela, Schwenk, Barrault and Bordes, EMNLP 2017).

Words are looked up in a file of word vectors, which are frozen; unknown ones are skipped. A
bidirectional LSTM reads <s>, the known words and </s>, and a sentence's vector is the largest value
of each of its 2 x 2,048 outputs over the words (section 3.2):

    h_t = (forward LSTM, backward LSTM)
    u = max over t of h_t
    o = softmax( W3 W2 W1 (u, v, |u - v|, u * v) )

with W1 of shape (512, 4 x 4,096), W2 (512, 512), W3 (3, 512), with biases, and no activation
between them. Cross-entropy over entailment, neutral, contradiction. The classifier is thrown away;
u is scored.

SGD: the rate is multiplied by 0.99 after every epoch, and divided by 5 whenever a dev score is no
better than the best before. The authors' dev score is NLI accuracy after each epoch, ours the
Spearman correlation that selects the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bench.method import (
    Batch,
    BenchError,
    Features,
    Loss,
    Method,
    Recipe,
    TorchMethod,
    Value,
    check_positive,
)
from bench.method.own_vectors import OwnVectors
from bench.methods.bounds import check_usual_schedule
from bench.methods.glove_avg import GloveAvg, check_vectors_file, read_vectors

CODE = "InferSent train_nli.py, before commit c752882"
LABELS = 3
FIRST, LAST = "<s>", "</s>"  # looked up like words; zero vectors if the file has none
PADDING = 0  # row of the table: zeros


@dataclass(frozen=True)
class WordVectors:
    """A file of word vectors in the place of a pretrained encoder."""

    name: str
    revision: str
    tokenizer: None = None
    max_tokens: int = 1024


class InferSent(OwnVectors, TorchMethod):
    """InferSent: a BiLSTM with max-pooling over a file of word vectors, trained to classify NLI
    pairs.

    Take it as the supervised baseline before transformers.

    Example:
        bench run --method infersent --setting supervised --set vectors=glove.840B.300d.zip \\
          --corpus nli.csv

    Relations: SBERT is the same objective with BERT and mean pooling.
    """

    name = "infersent"
    settings = ("supervised",)
    summary = "BiLSTM over word vectors, trained on NLI labels"
    paper = (
        "Conneau, Kiela, Schwenk, Barrault, Bordes: Supervised Learning of Universal Sentence "
        "Representations from Natural Language Inference Data, EMNLP 2017, arXiv 1705.02364"
    )
    trains = (
        "the LSTM, and while training the classifier of three linear layers; the word vectors stay"
    )
    own_backbone = "glove"
    places = ("vectors",)
    trains_on = "text"
    training_only = ("classifier", "best", "drops")
    classifier: nn.Sequential
    table: Tensor  # (words + 3, D): a row of zeros, the file's vectors, <s> and </s>
    best: Tensor  # the highest dev score, and how many were no higher
    drops: Tensor
    defaults = {
        "vectors": Value(
            None,
            "your file: --set vectors=FILE (glove.840B.300d; a word and its numbers per line; plain, "
            ".xz, .gz or .zip)",
        ),
        "lstm_size": Value(
            2048, CODE + " (--enc_lstm_dim)", "each way: the vectors have twice as many numbers"
        ),
        "classifier_size": Value(512, CODE + " (--fc_dim)"),
        "batch_size": Value(64, CODE),
        "learning_rate": Value(0.1, CODE, "of SGD"),
        "rate_decay": Value(0.99, CODE + " (--decay)", "factor of the rate after every epoch"),
        "rate_shrink": Value(
            5.0,
            CODE + " (--lrshrink)",
            "divides the rate whenever a dev score is no better than the best",
        ),
        "epochs": Value(20, CODE, "the authors stop where the rate falls under 1e-5"),
        "max_grad_norm": Value(5.0, CODE + " (--max_norm)"),
        "max_seq_length": Value(
            128, "ours", "words of a training sentence, <s> and </s> included; the authors cut none"
        ),
        "eval_steps": Value(
            14720,
            "ours: once in an epoch of the 942k pairs of SNLI and MNLI",
            "the authors: after each epoch",
        ),
    }

    @classmethod
    def check(cls, recipe: Recipe, backbone: Path | None) -> None:
        check_vectors_file(cls.name, recipe)
        check_usual_schedule(cls.name, recipe)
        if recipe.get("dropout") is not None:
            raise BenchError(
                f"dropout={recipe['dropout']}: infersent has none", "leave dropout out"
            )
        for key in ("lstm_size", "classifier_size", "rate_decay", "rate_shrink"):
            check_positive(recipe, key)

    @classmethod
    def needs(cls, setting: str, recipe: Recipe) -> tuple[str, ...]:
        return ("labelled",)

    @classmethod
    def own_revision(cls, recipe: Recipe) -> str:
        return GloveAvg.own_revision(recipe)

    def build(self, backbone: Any, recipe: Recipe) -> None:
        self.recipe = recipe
        vectors_file: Any = WordVectors(str(self.own_backbone), self.own_revision(recipe))
        self.backbone = vectors_file
        self.words, vectors = read_vectors(Path(recipe.vectors))
        zeros = np.zeros_like(vectors[0])
        first = vectors[self.words[FIRST]] if FIRST in self.words else zeros
        last = vectors[self.words[LAST]] if LAST in self.words else zeros
        table = np.concatenate([zeros[None], vectors, np.stack([first, last])])
        self.register_buffer("table", torch.from_numpy(table), persistent=False)
        self.before, self.after = [len(table) - 2], [len(table) - 1]
        self.encoder = nn.LSTM(
            table.shape[1], recipe.lstm_size, batch_first=True, bidirectional=True
        )
        size = recipe.classifier_size
        self.classifier = nn.Sequential(
            nn.Linear(4 * 2 * recipe.lstm_size, size),
            nn.Linear(size, size),
            nn.Linear(size, LABELS),
        )
        self.register_buffer("best", torch.tensor(-float("inf")))
        self.register_buffer("drops", torch.tensor(0))

    @property
    def pad_id(self) -> int:
        return PADDING

    def token_ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the table's rows for the known words of each sentence."""
        return [
            [self.words[word] + 1 for word in sentence.split() if word in self.words]
            for sentence in sentences
        ]

    def collate(
        self, columns: Mapping[str, Sequence[Any]], rows: np.ndarray, epoch: int
    ) -> tuple[Features, ...]:
        ids: dict[str, Sequence[Any]] = {}
        for name, texts in columns.items():
            ids[name] = texts if name == "label" else self.token_ids(texts)
        return super().collate(ids, rows, epoch)

    def views(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return u and v, (n, 2 lstm_size) each, and the labels (n,)."""
        premise, hypothesis, labels = batch.columns
        return self.embed(premise), self.embed(hypothesis), labels["labels"]

    def loss(self, views: tuple[Tensor, ...], batch: Batch) -> Loss:
        u, v, labels_n = views
        return Loss(
            cross_entropy(self.classifier(pair_features_with_product(u, v)).float(), labels_n)
        )

    def hidden(self, features: Features) -> Tensor:
        """Return the outputs of the LSTM, (n, T, 2 lstm_size), in float32; zeros at padding."""
        ids, lengths = features["input_ids"], features["attention_mask"].sum(1).cpu()
        with torch.autocast(ids.device.type, enabled=False):
            packed = pack_padded_sequence(
                self.table[ids], lengths, batch_first=True, enforce_sorted=False
            )
            outputs, _ = self.encoder(packed)
            states, _ = pad_packed_sequence(outputs, batch_first=True, total_length=ids.shape[1])
            return states

    def embed(self, features: Features) -> Tensor:
        padding = features["attention_mask"][:, :, None] == 0
        return self.hidden(features).masked_fill(padding, -torch.inf).amax(1)  # (n, 2 lstm_size)

    def optimizer(self) -> torch.optim.Optimizer:
        trained = [p for p in self.parameters() if p.requires_grad]
        return torch.optim.SGD(
            trained, lr=self.recipe.learning_rate, weight_decay=self.recipe.weight_decay
        )

    def learning_rate(self, step: int, steps: int) -> float:
        epochs = self.recipe.epochs or 1  # a budget has none: then it counts once
        done = int(step * epochs / max(1, steps))
        decayed = self.recipe.learning_rate * self.recipe.rate_decay**done
        return decayed / self.recipe.rate_shrink ** int(self.drops)

    def dev_score(self, score: Callable[[Method], float]) -> float:
        found = score(self)
        if found > float(self.best):
            self.best.fill_(found)
        else:
            self.drops.add_(1)
        return found


def pair_features_with_product(u_nD: Tensor, v_nD: Tensor) -> Tensor:
    """Return (n, 4D): (u, v, |u - v|, u * v). Source: Conneau et al. 2017, section 3.1."""
    return torch.cat([u_nD, v_nD, (u_nD - v_nD).abs(), u_nD * v_nD], dim=1)
