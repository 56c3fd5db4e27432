"""Compare Focal-InfoNCE with the authors' code (puerrrr/Focal-InfoNCE).

    python benchmarks/parity/focal_infonce.py --checkout Focal-InfoNCE --peer-python PEER/bin/python

Both sides have the same tiny model, weights and sentences. Their head is stored as `key_layer`,
which evaluation.py does not find again: "test cls" is CLS without it, as they publish.
"""

from __future__ import annotations

from cases import Case, Embedding, Repository
from parity import run

from bench.methods.focal_infonce import FocalInfoNCE

REPOSITORY = Repository(
    "Focal-InfoNCE", "focalNCE", (("encoder.", "FAMILY."), ("head.dense.", "mlp.key_layer."))
)
EMBEDDINGS = (
    Embedding("dev"),
    Embedding("test cls", "evaluation", {"pooler": "cls_before_pooler"}),
)


def case(temperature: float, m: float) -> Case:
    theirs = {"pooler_type": "cls", "mlp_only_train": True, "temp": temperature, "m": m}
    values = {"temperature": temperature, "hardness_m": m}
    return Case(
        f"tau {temperature}, m {m}",
        FocalInfoNCE,
        values=values,
        arguments=theirs,
        embeddings=EMBEDDINGS,
    )


CASES = (case(0.07, 0.3), case(0.05, 0.3), case(0.05, 0.0))

if __name__ == "__main__":
    run(REPOSITORY, CASES)
