"""Prompts for a frozen encoder, against an encoder written out here: float64, keys and values put
together by hand.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from harness import training
from torch import Tensor
from torch.nn.functional import layer_norm, linear
from transformers import (
    BertConfig,
    BertModel,
    RobertaConfig,
    RobertaModel,
    RobertaPreLayerNormConfig,
    RobertaPreLayerNormModel,
)

from bench.backbones.held_in import hold_in, widened_weights
from bench.method import BenchError
from bench.methods.prefix import DeepPrefix, HiddenPrefix, InputPrompt, prompt_for

P = 3
L = 3
A = 4
H = 24
PAD = {"bert": 0, "roberta": 1}
IDS = [[7, 9, 11, 13, 15], [21, 23, 25, None, None]]  # None: padding
FAMILIES = pytest.mark.parametrize("family", ["bert", "roberta"])
ATTENTION = pytest.mark.parametrize("attention", ["eager", "sdpa"])


def encoder(family: str, attention: str = "sdpa", dropout: float = 0.0) -> Any:
    """Random, and far from flat: the library's own start hardly shows a token at the wrong
    position.
    """
    bert = family == "bert"
    sizes = {"vocab_size": 50, "hidden_size": H, "num_hidden_layers": L, "num_attention_heads": A}
    sizes |= {"intermediate_size": 40, "max_position_embeddings": 40, "pad_token_id": PAD[family]}
    rest = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    config = (BertConfig if bert else RobertaConfig)(
        **sizes, **rest, type_vocab_size=2 if bert else 1, attn_implementation=attention
    )
    torch.manual_seed(0)
    built = (BertModel if bert else RobertaModel)(config, add_pooling_layer=False)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return built.eval()


def batch(family: str, extra_padding: int = 0) -> dict[str, Tensor]:
    rows = [row + [None] * extra_padding for row in IDS]
    ids = torch.tensor([[PAD[family] if i is None else i for i in row] for row in rows])
    mask = torch.tensor([[int(i is not None) for i in row] for row in rows])
    return {"input_ids": ids, "attention_mask": mask}


def table(seed: int = 5, columns: int = 2 * L * H) -> Tensor:
    return torch.randn(P, columns, generator=torch.Generator().manual_seed(seed))


def prefix(values: Tensor, dropout: float = 0.0, shared: bool = False) -> DeepPrefix:
    made = DeepPrefix(L, A, H, len(values), dropout, shared=shared).to(values.dtype)
    made.table.data.copy_(values)
    return made.eval()


def hidden(values: Tensor, dropout: float = 0.0) -> HiddenPrefix:
    made = HiddenPrefix(L, A, H, len(values), dropout).to(values.dtype)
    made.table.data.copy_(values)
    return made.eval()


def heads(x: Tensor) -> Tensor:
    """(n, T, H) -> (n, A, T, d), head a being columns a d to (a + 1) d."""
    return torch.stack([x[..., a * (H // A) : (a + 1) * (H // A)] for a in range(A)], dim=1)


def by_hand(
    model: Any,
    family: str,
    features: dict[str, Tensor],
    E: Tensor | None = None,
    *,
    start: int | None = None,
    swapped: bool = False,
    shared: bool = False,
    before: Tensor | None = None,
    states: Tensor | None = None,
    replaced: bool = True,
) -> Tensor:
    """(n, T, H) in float64. E: a prefix; ``before``: (P, H) vectors in front of the word
    embeddings; ``states``: (P, LH), in front of the tokens' states at the input of each layer, in
    the place of what the layer before gave there (unless ``replaced`` is False); start: first
    position.
    """
    w = {name: value.detach().double() for name, value in model.state_dict().items()}
    ids, mask = features["input_ids"], features["attention_mask"]
    n, T = ids.shape
    taken = next((len(slots) for slots in (E, states) if slots is not None), 0)
    x = w["embeddings.word_embeddings.weight"][ids]
    positions = torch.arange(T).expand(n, T) + (taken if start is None else start)
    if family == "roberta":
        positions = (mask.cumsum(1) + (taken if start is None else start)) * mask + PAD[family]
    if before is not None:
        x = torch.cat([before.double().expand(n, -1, -1), x], dim=1)
        roberta = family == "roberta"
        own = torch.arange(len(before)).expand(n, -1) + (PAD[family] + 1 if roberta else 0)
        positions = torch.cat([own, positions + len(before) * (mask if roberta else 1)], dim=1)
        mask = torch.cat([torch.ones(n, len(before), dtype=mask.dtype), mask], dim=1)

    def norm(name: str, value: Tensor) -> Tensor:
        scale, shift = w[f"{name}.LayerNorm.weight"], w[f"{name}.LayerNorm.bias"]
        return layer_norm(value, (H,), scale, shift, model.config.layer_norm_eps)

    def dense(name: str, value: Tensor) -> Tensor:
        return linear(value, w[f"{name}.weight"], w[f"{name}.bias"])

    x = x + w["embeddings.token_type_embeddings.weight"][0]
    x = norm("embeddings", x + w["embeddings.position_embeddings.weight"][positions])
    for i in range(L):
        at = f"encoder.layer.{i}"
        if states is not None and i == 0:
            mask = torch.cat([torch.ones(n, taken, dtype=mask.dtype), mask], dim=1)
        if states is not None and (i == 0 or replaced):
            own = states[:, i * H : (i + 1) * H].double().expand(n, -1, -1)
            x = torch.cat([own, x[:, taken:] if i else x], dim=1)  # (n, P + T, H)
        parts = (dense(f"{at}.attention.self.{part}", x) for part in ("query", "key", "value"))
        (q, k, v), seen = map(heads, parts), mask
        if E is not None:
            first = 0 if shared else 2 * i * H
            own_k, own_v = E[:, first : first + 2 * H].double().chunk(2, dim=1)
            own_k, own_v = (own_v, own_k) if swapped else (own_k, own_v)
            k = torch.cat([heads(own_k.expand(n, -1, -1)), k], dim=2)
            v = torch.cat([heads(own_v.expand(n, -1, -1)), v], dim=2)
            seen = torch.cat([torch.ones(n, taken, dtype=mask.dtype), mask], dim=1)
        scores = q @ k.transpose(2, 3) / math.sqrt(H // A)
        scores = scores.masked_fill(seen[:, None, None] == 0, -1e30)
        attended = torch.softmax(scores, dim=-1) @ v  # (n, A, T, d)
        attended = torch.cat([attended[:, a] for a in range(A)], dim=-1)
        x = norm(f"{at}.attention.output", x + dense(f"{at}.attention.output.dense", attended))
        inner = dense(f"{at}.intermediate.dense", x)
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
        x = norm(f"{at}.output", x + dense(f"{at}.output.dense", inner))
    if before is not None:
        return x[:, len(before) :]
    return x[:, taken:] if states is not None else x


def apart(a: Tensor, b: Tensor, features: dict[str, Tensor]) -> float:
    """Return the largest difference of two (n, T, H) at real tokens."""
    real = features["attention_mask"].bool()
    T = min(a.shape[1], b.shape[1])
    return float((a[:, :T].double() - b[:, :T].double()).abs()[real[:, :T]].max())


@FAMILIES
@ATTENTION
def test_states_equal_those_computed_by_hand(family: str, attention: str) -> None:
    model = encoder(family, attention)
    features = batch(family)
    E = table()
    with torch.no_grad():
        single = prefix(E).states(model, features)
        wanted = by_hand(model, family, features, E)
        assert single.shape == (2, 5, H)
        assert apart(single, wanted, features) <= 5e-6
        # two mistakes: the sentence at position 0, values used as keys
        assert apart(single, by_hand(model, family, features, E, start=0), features) > 0.1
        assert apart(single, by_hand(model, family, features, E, swapped=True), features) > 0.1
        assert apart(prefix(E.double()).states(model.double(), features), wanted, features) <= 1e-12


@FAMILIES
@ATTENTION
def test_a_prefix_that_the_layers_share_and_vectors_before_the_sentence(family, attention):
    model, features = encoder(family, attention).double(), batch(family)
    shared, before = table(columns=2 * H).double(), table(columns=H).double()
    prompt = InputPrompt(H, P).double()
    prompt.table.data.copy_(before)
    with torch.no_grad():
        ours = prefix(shared, shared=True).states(model, features)
        assert apart(ours, by_hand(model, family, features, shared, shared=True), features) <= 1e-12
        # the same keys and values at each layer equal a deep prefix with equal slices
        assert torch.equal(ours, prefix(shared.repeat(1, L)).states(model, features))
        ours = prompt.states(model, features)
        assert ours.shape == (2, 5, H)
        assert apart(ours, by_hand(model, family, features, before=before), features) <= 1e-12
        assert apart(ours, by_hand(model, family, features), features) > 0.1


@FAMILIES
@ATTENTION
def test_states_at_the_input_of_each_layer_equal_those_computed_by_hand(family, attention):
    """Equation 1 word for word: every layer computes P + T states; the first P are replaced."""
    model, features, own = encoder(family, attention), batch(family), table(columns=L * H)
    wanted = by_hand(model, family, features, states=own)
    with torch.no_grad():
        assert apart(hidden(own).states(model, features), wanted, features) <= 5e-6
        model = model.double()
        ours = hidden(own.double()).states(model, features)
        assert ours.shape == (2, 5, H)
        assert apart(ours, wanted, features) <= 1e-12
        # three mistakes: the sentence at position 0; a prompt that only the first layer gets;
        # states that are keys and values as they are
        twice = own.view(P, L, 1, H).expand(P, L, 2, H).reshape(P, 2 * L * H)
        for wrong in (
            by_hand(model, family, features, states=own, start=0),
            by_hand(model, family, features, states=own, replaced=False),
            by_hand(model, family, features, twice),
        ):
            assert apart(ours, wrong, features) > 0.1


@FAMILIES
@pytest.mark.parametrize("kind", ["deep", "hidden"])
def test_gradients_with_respect_to_the_prefix(family: str, kind: str) -> None:
    model, features = encoder(family), batch(family)
    direction = torch.randn(2, H, generator=torch.Generator().manual_seed(9))
    if kind == "deep":
        ours, theirs = prefix(table()), table().double().requires_grad_()
        computed = by_hand(model, family, features, theirs)
    else:
        own = table(columns=L * H)
        ours, theirs = hidden(own), own.double().requires_grad_()
        computed = by_hand(model, family, features, states=theirs)
    (ours.states(model, features)[:, 0] * direction).sum().backward()
    (computed[:, 0] * direction.double()).sum().backward()
    assert ours.table.grad is not None and theirs.grad is not None
    assert theirs.grad.abs().max() > 0.5, "a gradient too small to show a mistake"
    torch.testing.assert_close(ours.table.grad.double(), theirs.grad, rtol=0, atol=5e-6)


def test_prefix_dropout_is_drawn_per_row_and_number_and_off_when_scoring() -> None:
    E = DeepPrefix(L, A, H, 8, 0.1)
    with training(E):
        drawn = torch.stack([torch.cat(pair) for pair in E.keys_values(None, 64)])
    dropped = (drawn == 0).double()
    assert dropped.mean().item() == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / drawn.numel()))
    rows = dropped.flatten(2).mean((0, 2))
    assert rows.std() < 0.05 and rows.max() < 0.5, "whole rows are dropped"
    # two rows are both without a number one time in a hundred, not one in ten: each row has a draw
    # of its own
    assert (dropped[:, 0] * dropped[:, 1]).mean().item() < 0.03
    kept = drawn[drawn != 0]
    quiet = torch.stack([torch.cat(pair) for pair in E.keys_values(None, 64)])
    torch.testing.assert_close(kept * 0.9, quiet[drawn != 0])


def test_dropout_of_a_layers_states_comes_before_their_projection() -> None:
    """Each number of a state is left out or doubled, for each row and layer by itself."""
    model = encoder("bert").double()
    own = torch.ones(P, L * H, dtype=torch.float64)
    prompt = hidden(own, dropout=0.5)
    with training(prompt), torch.no_grad():
        pairs = prompt.keys_values(model, 2)
    for i, (keys, values) in enumerate(pairs):
        attention = model.encoder.layer[i].attention.self
        for drawn, projection in ((keys, attention.key), (values, attention.value)):
            rows = drawn.transpose(1, 2).flatten(2) - projection.bias  # (2, P, H)
            # the states that give these keys: 0 or 1 / (1 - 0.5)
            states = torch.linalg.solve(projection.weight, rows.flatten(0, 1).T).T
            kinds = (states / 2).round()
            torch.testing.assert_close(states, 2 * kinds, rtol=0, atol=1e-6)
            assert set(kinds.flatten().tolist()) == {0.0, 1.0}
    first, second = (pair[0] for pair in pairs[:2])
    assert not torch.equal(first[0], first[1]) and not torch.equal(first, second)


def test_states_behind_weights_that_are_held_in_bfloat16() -> None:
    """Scored with float32 copies of the same numbers; trained in bfloat16."""
    narrow, features, own = encoder("bert").bfloat16(), batch("bert"), table(columns=L * H)
    hold_in(narrow, "bf16")
    whole = encoder("bert")
    whole.load_state_dict({name: value.float() for name, value in narrow.state_dict().items()})
    prompt = hidden(own)
    with torch.no_grad():
        wanted = prompt.states(whole, features)
        with widened_weights(narrow):
            assert apart(prompt.states(narrow, features), wanted, features) <= 1e-5
        assert 1e-4 < apart(prompt.states(narrow, features), wanted, features) < 0.5


def test_layers_that_norm_states_before_they_make_keys_of_them_are_refused() -> None:
    sizes = {"vocab_size": 50, "hidden_size": H, "num_hidden_layers": L, "num_attention_heads": A}
    model = RobertaPreLayerNormModel(RobertaPreLayerNormConfig(**sizes, intermediate_size=40))
    backbone: Any = SimpleNamespace(
        name="normed",
        family="roberta-prelayernorm",
        encoder=model,
        max_tokens=40,
        reads_ahead=True,
    )
    assert prompt_for(backbone, "deep", P).kind == "deep"
    with pytest.raises(BenchError, match="^prompt=hidden: normed is a roberta-prelayernorm model"):
        prompt_for(backbone, "hidden", P)
