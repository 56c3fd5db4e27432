"""Compare PromCSE and DCPCSE with the authors' code (YJiangcm/PromCSE).

    python benchmarks/parity/promcse.py --checkout PromCSE --peer-python PEER/bin/python

Both sides have the same tiny model, weights and sentences. Dropout is off on both, in the prefix
too. The MLM cases read the very tokens that the authors' collator masked.
"""

from __future__ import annotations

from typing import Any

from cases import Case, Embedding, Repository
from parity import run

from bench.methods.dcpcse import DCPCSE
from bench.methods.promcse import PromCSE

REPOSITORY = Repository(
    "PromCSE",
    "promcse",
    (
        ("encoder.", "FAMILY."),
        ("head.", "mlp."),
        ("prompt.table", "prefix_encoder.embedding.weight"),
        ("lm_head.", "lm_head."),
    ),
)
EMBEDDINGS = (Embedding("dev"), Embedding("test", "evaluation", whole_model=True))
THEIRS: dict[str, Any] = {"pooler_type": "cls", "temp": 0.05}


def unsupervised(
    name: str, method: Any, length: int, arguments: dict[str, Any], step: int = 0, **values: Any
) -> Case:
    theirs = {**THEIRS, "mlp_only_train": True, "pre_seq_len": length, **arguments}
    return Case(
        name,
        method,
        values={"prompt_length": length, **values},
        arguments=theirs,
        embeddings=EMBEDDINGS,
        step=step,
    )


def supervised(
    name: str, length: int, arguments: dict[str, Any], processes: int = 1, **values: Any
) -> Case:
    ours = {"prompt_length": length, "head_at_test": True, **values}
    theirs = {**THEIRS, "pre_seq_len": length, **arguments}
    return Case(
        name,
        PromCSE,
        "supervised",
        values=ours,
        arguments=theirs,
        embeddings=EMBEDDINGS,
        processes=processes,
    )


def hinge(name: str, margin: float, weight: float, processes: int = 1, **ours: Any) -> Case:
    theirs = {"do_eh_loss": True, "eh_loss_margin": margin, "eh_loss_weight": weight}
    return supervised(
        f"EH{name}, margin {margin}",
        5,
        theirs,
        processes,
        eh=True,
        eh_margin=margin,
        eh_weight=weight,
        **ours,
    )


def with_mlm(step: int) -> Case:
    return unsupervised(
        f"DCPCSE mlm, step {step}", DCPCSE, 4, {"do_mlm": True, "mlm_weight": 0.1}, step, mlm=True
    )


CASES = (
    unsupervised("unsupervised, P 4", PromCSE, 4, {}),
    unsupervised("unsupervised, P 1", PromCSE, 1, {}),
    supervised("supervised, w 0", 5, {}),
    supervised("supervised, w 1", 5, {"hard_negative_weight": 1.0}, hard_negative_weight=1.0),
    hinge("", 0.2, 10.0),
    hinge("", -0.1, 3.0),  # below 0, so that the hinge is open for three rows of six on BERT
    hinge("", -0.01, 3.0),  # and for two of six on RoBERTa
    hinge(", 2 processes", 0.2, 10.0, 2, faithful=True),
    unsupervised("DCPCSE unsupervised", DCPCSE, 4, {}),
    with_mlm(0),
    with_mlm(250),
)

if __name__ == "__main__":
    run(REPOSITORY, CASES)
