"""Compare SimCSE with the authors' code (princeton-nlp/SimCSE).

    python benchmarks/parity/simcse.py --checkout SimCSE --peer-python PEER/bin/python

Both sides have the same tiny model, weights and sentences. The mlm cases read the very tokens that
the authors' collator masked. "2 processes" is their gather, ours with `faithful`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from cases import Case, Embedding, Repository
from parity import run

from bench.method import TorchMethod
from bench.methods.pooling import POOLERS
from bench.methods.simcse import SimCSE

REPOSITORY = Repository(
    "SimCSE",
    "simcse",
    (
        ("encoder.", "FAMILY."),
        ("head.", "mlp."),
        ("lm_head.decoder.bias", "lm_head.bias"),
        ("lm_head.", "lm_head."),
    ),
)


def pooled(name: str) -> Embedding:
    """A pooler of their evaluation.py and ours of the same meaning."""

    def ours(method: TorchMethod, sentences: Sequence[str]) -> torch.Tensor:
        features = method.assemble(method.token_ids(sentences))
        states = method.encoder(**features, output_hidden_states=True).hidden_states
        return POOLERS[name](states, features["attention_mask"])

    return Embedding(
        f"test {name}",
        "evaluation",
        {"pooler": name.replace("cls", "cls_before_pooler")},
        ours=ours,
    )


WITH_HEAD = Embedding("test cls", "evaluation", {"pooler": "cls"})
MEANS = ("avg", "avg_top2", "avg_first_last")
POOLED = tuple(pooled(name) for name in ("cls", *MEANS))
MLM = {"do_mlm": True, "mlm_weight": 0.1}


def unsupervised(
    name: str, arguments: dict[str, Any], *embeddings: Embedding, **values: Any
) -> Case:
    theirs = {"pooler_type": "cls", "mlp_only_train": True, "temp": 0.05, **arguments}
    return Case(
        name, SimCSE, values=values, arguments=theirs, embeddings=(Embedding("dev"), *embeddings)
    )


def supervised(name: str, arguments: dict[str, Any], processes: int = 1, **values: Any) -> Case:
    theirs, ours = (
        {"pooler_type": "cls", "temp": 0.05, **arguments},
        {"head_at_test": True, **values},
    )
    embeddings = (Embedding("dev"), WITH_HEAD)
    return Case(
        name,
        SimCSE,
        "supervised",
        values=ours,
        arguments=theirs,
        embeddings=embeddings,
        processes=processes,
    )


CASES = (
    unsupervised("unsupervised", {}, *POOLED),
    unsupervised("unsupervised, temperature 0.5", {"temp": 0.5}, temperature=0.5),
    unsupervised("unsupervised, mlm", MLM, mlm=True),
    unsupervised(
        "unsupervised, cls without head", {"pooler_type": "cls_before_pooler"}, head=False
    ),
    *(
        unsupervised(f"unsupervised, {pooler}", {"pooler_type": pooler}, pooling=pooler)
        for pooler in MEANS
    ),
    supervised("supervised, w 0", {}),
    supervised("supervised, w 1", {"hard_negative_weight": 1.0}, hard_negative_weight=1.0),
    supervised("supervised, mlm", MLM, mlm=True),
    supervised("supervised, 2 processes", {}, 2, faithful=True),
)

if __name__ == "__main__":
    run(REPOSITORY, CASES)
