"""TSDAE: the authors' values, the decoder against transformers' own, and that nothing but the
sentence's vector reaches it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from formula import Formula
from harness import batch_of, double, same, training
from models import built, sentences
from torch import nn

from bench.method import Batch
from bench.method.torch_method import trained_state, training_state
from bench.methods.masking import mean_surprise, places_of, surprise_of_rows
from bench.methods.tsdae import TSDAE, CrossAttention, without


def test_the_mean_over_tokens_is_that_of_the_reference(reference_c):
    known = reference_c["tsdae"]
    logits = double(known["logits_of_decoder_at_positions_0_to_4"]).requires_grad_()
    ids = torch.tensor(known["input_ids"])[:, 1:]
    labels = ids.masked_fill(ids == known["pad"], -100)
    used = logits[:, : labels.shape[1]]
    places = places_of(labels)
    sums, counts = surprise_of_rows(used[places], labels, places)
    same(sums, known["row_sums"])
    same(counts, known["row_counts"])
    loss = mean_surprise(sums, counts)
    loss.backward()
    same(loss, known["loss"])
    same(logits.grad, known["grad_logits"])
    assert abs(loss.item() - known["wrong_reading_mean_of_row_means"]) > 0.1


def wave(parameter: nn.Parameter, p: int, name: str) -> None:
    """The reference file's rule for a weight, number ``p`` in its list."""
    base = torch.sin(0.7 * torch.arange(parameter.numel(), dtype=torch.float64) + 1.3 * p)
    norm = "LayerNorm" in name and name.endswith("weight")
    value = 1 + 0.1 * base if norm else (0.1 if name.endswith("bias") else 0.35) * base
    with torch.no_grad():
        parameter.copy_(value.reshape(parameter.shape))


def test_a_tiny_bert_has_the_loss_and_gradients_of_the_authors_code(reference_b, reference_c):
    from transformers.models.bert.modeling_bert import BertLMPredictionHead

    known, encoder = reference_c["tsdae_tiny_bert"], Formula(reference_b["tiny_bert"]).encoder
    method: Any = TSDAE()
    method.recipe = {}
    method.encoder = encoder
    method.cross = nn.ModuleList(CrossAttention(encoder.config).double() for _ in range(2))
    for layer, cross in enumerate(method.cross):
        names = known["cross_attention_names"]
        parts = {"LayerNorm": cross.norm, "output.dense": cross.output, "self.value": cross.value}
        for part, module in parts.items():
            for kind in ("bias", "weight"):
                (p,) = [
                    i
                    for i, n in enumerate(names)
                    if f"layer.{layer}." in n and n.endswith(f"{part}.{kind}")
                ]
                wave(getattr(module, kind), 100 + p, names[p])
    head = BertLMPredictionHead(encoder.config).double()
    for p, name in enumerate(known["head_names"]):
        wave(head.get_parameter(name.removeprefix("predictions.")), 200 + p, name)
    method.lm_bias = nn.Parameter(head.bias.detach().clone())
    head.decoder, head.bias = nn.Identity(), None
    method.lm_head = head
    method.eval()

    def features(ids: list[list[int]]) -> dict[str, torch.Tensor]:
        made = torch.tensor(ids)
        return {"input_ids": made, "attention_mask": (made != known["pad"]).long()}

    damaged, whole = features(known["damaged_ids"]), features(known["original_ids"])
    same(method.embed(damaged), known["sentence_vectors"])
    loss = method(Batch((damaged, whole))).total
    loss.backward()
    same(loss, known["loss"])
    wanted = known["grad_norms"]
    query = encoder.encoder.layer[0].attention.self.query.weight
    for parameter, key in (
        (
            encoder.embeddings.word_embeddings.weight,
            "word_embeddings (encoder, decoder input and output together)",
        ),
        (method.cross[0].value.weight, "layer 0 cross-attention value"),
        (query, "layer 0 self-attention query (encoder and decoder together)"),
    ):
        same(parameter.grad.norm(), wanted[key])


def test_the_decoder_is_transformers_own_with_shared_weights(backbone, tmp_path):
    """BertLMHeadModel or RobertaForCausalLM with cross-attention to one vector, whatever its query
    and key are.
    """
    from transformers import AutoModelForCausalLM

    method = built(TSDAE, backbone, tmp_path, setting="unsupervised", dropout=0.0).double()
    other = AutoModelForCausalLM.from_pretrained(
        backbone, is_decoder=True, add_cross_attention=True
    )
    other.double().eval()
    theirs = getattr(other, other.base_model_prefix)
    for layer, cross in zip(theirs.encoder.layer, method.cross, strict=True):
        attention = layer.crossattention
        attention.self.value.load_state_dict(cross.value.state_dict())
        attention.output.dense.load_state_dict(cross.output.state_dict())
        attention.output.LayerNorm.load_state_dict(cross.norm.state_dict())
    damaged, whole = batch_of(method, sentences(6, seed=5, longest=14)).columns
    with torch.no_grad():
        vectors = method.embed(damaged)
        logits = other(
            input_ids=whole["input_ids"],
            attention_mask=whole["attention_mask"],
            encoder_hidden_states=vectors.unsqueeze(1),
        ).logits
        found = method.logits(method.decode(whole["input_ids"], vectors))
    known = whole["attention_mask"].bool()
    torch.testing.assert_close(found[known], logits[known], rtol=0, atol=1e-9)


@pytest.mark.parametrize("faithful", [False, True])
def test_only_the_vector_of_the_damaged_sentence_reaches_the_decoder(tiny, tmp_path, faithful):
    values = {"setting": "unsupervised", "faithful": faithful}
    method = built(TSDAE, tiny, tmp_path, **values).double()
    damaged, whole = batch_of(method, sentences(4, seed=1)).columns
    vectors = method.embed(damaged)
    method.embed = lambda features: vectors
    one = method(Batch((damaged, whole))).total
    other = method(Batch((whole, whole))).total
    assert one.item() == other.item()
    with training(method):
        torch.manual_seed(0)
        assert method(Batch((damaged, whole))).total.item() != one.item()  # dropout is on


def test_a_token_does_not_see_those_behind_it(backbone, tmp_path):
    method = built(TSDAE, backbone, tmp_path, setting="unsupervised", dropout=0.0).double()
    (_, whole) = batch_of(method, sentences(3, seed=2, longest=12)).columns
    ids, vectors = whole["input_ids"], torch.randn(3, method.backbone.hidden_size).double()
    changed = ids.clone()
    changed[:, 4:] = 11
    with torch.no_grad():
        torch.testing.assert_close(
            method.decode(ids, vectors)[:, :4], method.decode(changed, vectors)[:, :4]
        )


def test_encoder_and_decoder_are_one_set_of_tensors_after_going_on(tiny, tmp_path):
    method = built(TSDAE, tiny, tmp_path, setting="unsupervised")
    state = {name: t + 0.5 for name, t in training_state(method).items()}
    assert not any("decoder" in name or "word" in name for name in state if "encoder." not in name)
    method.load_state_dict(state, strict=False)
    torch.testing.assert_close(
        method.encoder.get_input_embeddings().weight,
        state["encoder.embeddings.word_embeddings.weight"],
    )
    assert {name.split(".")[0] for name in trained_state(method)} == {"encoder"}


def test_words_go_with_the_share_and_one_stays(reference_c):
    known = reference_c["tsdae_deletion"]
    text = " ".join(f"w{i}" for i in range(known["words"]))
    rng = np.random.default_rng(0)
    kept = [len(without(text, 0.6, rng).split()) for _ in range(4000)]
    alone = known["probability_that_all_10_go_before_the_repair"]
    assert np.mean(kept) == pytest.approx(known["expected_kept"] + alone, abs=0.1)
    assert min(kept) == 1 and max(kept) > 7
    other = [len(without(text, 0.4, rng).split()) for _ in range(4000)]
    by_scripts = known["expected_kept_by_sentence_transformers_scripts_since_2025_01"]
    assert np.mean(other) == pytest.approx(by_scripts, abs=0.1)
    nothing = SimpleNamespace(random=lambda n: np.zeros(n), integers=lambda n: 1)
    assert without("It's (so) good!", 0.6, nothing) == "'"  # type: ignore[arg-type]
    assert without("It's (so) good!", 0.0, rng) == "It ' s ( so ) good !"
    assert without("  ", 0.6, rng) == "  "
