"""Teachers of RankCSE and guided SimCSE: frozen, in no checkpoint, with the student's tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import batch_of, training
from models import built, sentences

from bench.method import BenchError
from bench.method.recipes import merge_recipe
from bench.method.torch_method import trained_state, training_state
from bench.methods.guided_simcse import GuidedSimCSE
from bench.methods.rankcse import RankCSE

U, S = "unsupervised", "supervised"


TAUGHT = [
    pytest.param(RankCSE, U, {"teacher_1": None, "teacher_2": None}, "teachers", id="rankcse"),
    pytest.param(GuidedSimCSE, S, {"guide": None}, "guide", id="guided-simcse"),
]


@pytest.mark.parametrize(("cls", "setting", "keys", "part"), TAUGHT)
def test_a_teacher_is_frozen_in_eval_mode_and_in_no_checkpoint(
    backbone, tmp_path, cls: Any, setting: str, keys: dict[str, Any], part: str
) -> None:
    method = built(cls, backbone, tmp_path, setting=setting, **dict.fromkeys(keys, backbone))
    batch = batch_of(method, *[sentences(4, seed=i) for i in range(1 if setting == U else 3)])
    with training(method):
        first, second = method.views(batch), method.views(batch)
        assert not torch.equal(first[0], second[0]), "dropout of the student"
        assert torch.equal(first[-1], second[-1]) and not first[-1].requires_grad
        method(batch).total.backward()
    teacher = getattr(method, part)
    assert not [p for p in teacher.parameters() if p.requires_grad or p.grad is not None]
    for state in (trained_state(method), training_state(method)):
        assert not [name for name in state if name.startswith(part)]


@pytest.mark.parametrize(("cls", "setting", "keys", "part"), TAUGHT)
def test_a_teacher_reads_the_students_tokens(
    tiny, tiny_roberta, tmp_path, cls, setting, keys, part
):
    with pytest.raises(BenchError, match="vocabular"):
        built(cls, tiny, tmp_path, setting=setting, **dict.fromkeys(keys, tiny_roberta))
    assert cls.places == tuple(keys)
    with pytest.raises(BenchError, match="needs a trained encoder"):
        cls.check(merge_recipe(cls, None, "", {}, trained=True), None)


def test_the_guides_dropout_is_on_where_it_is_faithful(tiny, tmp_path) -> None:
    texts = [sentences(4, seed=i) for i in range(3)]
    method = built(GuidedSimCSE, tiny, tmp_path, setting=S, guide=tiny, faithful=True)
    batch = batch_of(method, *texts)
    with training(method):
        assert not torch.equal(method.views(batch)[-1], method.views(batch)[-1])
