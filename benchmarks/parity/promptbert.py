"""Compare PromptBERT with the authors' code (kongds/Prompt-BERT).

    python benchmarks/parity/promptbert.py --checkout Prompt-BERT --peer-python PEER/bin/python

Both sides have the same tiny model, weights and sentences. The templates go through both
tokenisers, so "tokens" compares how each side builds its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from cases import Case, Embedding, Repository, scored
from parity import run

from bench.method import TorchMethod
from bench.methods.promptbert import PromptBERT

REPOSITORY = Repository("Prompt-BERT", "prompt_bert", (("encoder.", "FAMILY."), ("head.", "mlp.")))
TEXTS = {
    "bert": ('This sentence of "{s}" means{m}.', 'This sentence : "{s}" means{m}.'),
    "roberta": ("This sentence : ' {s} ' means{m}.", "The sentence : ' {s} ' means{m}."),
}
FLAGS = (
    "embedding_only",
    "remove_continue_word",
    "mask_embedding_sentence_autoprompt",
    "mask_embedding_sentence_use_org_pooler",
    "mask_embedding_sentence_delta",
    "mask_embedding_sentence_org_mlp",
    "mask_embedding_sentence_use_pooler",
)


def theirs(text: str) -> str:
    """A template as their command line spells it."""
    return (
        "*cls*_"
        + text.replace(" ", "_").replace("{s}", "*sent_0*").replace("{m}", "*mask*")
        + "*sep+*"
    )


def at_dev(method: TorchMethod, sentences: Sequence[str]) -> torch.Tensor:
    """Our method's vectors while a dev score is computed."""
    found: list[torch.Tensor] = []

    def keep_vectors(_: object) -> float:
        found.append(scored(method, sentences))
        return 0.0

    method.dev_score(keep_vectors)
    return found[0]


def at_test(text: str, *flags: str) -> Embedding:
    arguments: dict[str, Any] = dict.fromkeys(FLAGS, False) | {
        f"mask_embedding_sentence_{flag}": True for flag in flags
    }
    arguments |= {"mask_embedding_sentence": True, "mask_embedding_sentence_template": theirs(text)}
    return Embedding("test", "evaluation", arguments)


def unsupervised(family: str, name: str, two: bool, debias: bool) -> Case:
    first, second = TEXTS[family]
    ours = {
        "template_1": first,
        "template_2": second if two else None,
        "debias_train": debias,
        "debias_at_dev": debias,
    }
    arguments = {
        "temp": 0.05,
        "mlp_only_train": True,
        "mask_embedding_sentence": True,
        "mask_embedding_sentence_delta": debias,
        "mask_embedding_sentence_template": theirs(first),
        "mask_embedding_sentence_different_template": theirs(second) if two else "",
    }
    embeddings = (Embedding("dev", ours=at_dev), at_test(first))
    return Case(
        name,
        PromptBERT,
        values=ours,
        arguments=arguments,
        embeddings=embeddings,
        families=(family,),
    )


def supervised(family: str, processes: int = 1, **values: Any) -> Case:
    first, transform = TEXTS[family][0], family == "bert"
    ours = {
        "template_1": first,
        "template_2": None,
        "head_at_test": True,
        "debias_at_test": True,
        **values,
    }
    arguments = {
        "temp": 0.05,
        "mask_embedding_sentence": True,
        "mask_embedding_sentence_delta": True,
        "mask_embedding_sentence_template": theirs(first),
        "mask_embedding_sentence_org_mlp": transform,
    }
    embeddings = (
        Embedding("dev", ours=at_dev),
        at_test(first, "delta", "org_mlp" if transform else "use_pooler"),
    )
    name = "supervised" if processes == 1 else f"supervised, {processes} processes"
    return Case(
        name,
        PromptBERT,
        "supervised",
        ours,
        arguments,
        embeddings,
        processes=processes,
        families=(family,),
    )


CASES = (
    *(unsupervised(family, "two templates, debias", True, True) for family in TEXTS),
    *(unsupervised(family, "one template, debias", False, True) for family in TEXTS),
    *(unsupervised(family, "two templates, no debias", True, False) for family in TEXTS),
    supervised("bert", head="mlm-transform"),
    supervised("roberta"),
    supervised("roberta", 2, faithful=True),
)

if __name__ == "__main__":
    run(REPOSITORY, CASES)
