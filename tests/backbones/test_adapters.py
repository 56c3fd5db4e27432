"""Adapters on tiny random encoders, against peft's own models and plain products."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from adapted_models import adapter_of, tiny_qwen3
from tiny_decoders import decoder
from transformers import AutoModel, AutoModelForCausalLM

from bench.backbones import load, resolve
from bench.backbones.adapters import (
    KEY,
    AdapterSettings,
    add_adapters,
    find_layers,
    has_adapters,
    plain_copy,
    without_adapters,
)
from bench.backbones.bidirectional import look_both_ways
from bench.backbones.four_bit import in_four_bits
from bench.backbones.held_in import hold_in, widened_weights
from bench.base.errors import BenchError, NotAModel

# transformers warns of its own name, which peft asks for
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")

IDS = torch.tensor([[5, 60, 7, 81, 9], [11, 12, 33, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
SETTINGS = AdapterSettings(rank=4, alpha=8.0, dropout=0.1)


@pytest.fixture(scope="module")
def qwen3(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_qwen3(tmp_path_factory.mktemp("adapted") / "qwen3")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return decoder(tmp_path_factory.mktemp("adapted") / "llama", "llama")


def states(encoder: Any) -> torch.Tensor:
    with torch.no_grad():
        found = encoder(input_ids=IDS, attention_mask=MASK).last_hidden_state
    return found * MASK.unsqueeze(-1)


def moved(encoder: Any) -> Any:
    """Give the adapters weights as if they had been trained: B begins at 0."""
    torch.manual_seed(8)
    for name, parameter in encoder.named_parameters():
        if KEY in name:
            parameter.data = torch.randn_like(parameter) * 0.1
    return encoder


def gpt2(folder: Path) -> str:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    GPT2Model(GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=2)).save_pretrained(folder)
    return str(folder)


def encoders(tiny: str, qwen3: str, llama: str, tmp_path: Path) -> dict[str, Any]:
    folders = {"bert": tiny, "qwen3": qwen3, "llama": llama, "gpt2": gpt2(tmp_path / "gpt2")}
    return {name: AutoModel.from_pretrained(folder).eval() for name, folder in folders.items()}


def test_adapters_are_those_of_peft_and_merge_without_a_difference(tiny, qwen3, llama, tmp_path):
    from peft import LoraConfig, get_peft_model

    for name, encoder in encoders(tiny, qwen3, llama, tmp_path).items():
        before = states(encoder)
        plain = copy.deepcopy(encoder)
        targets = find_layers(encoder, "all")
        add_adapters(encoder, SETTINGS, seed=1)
        assert torch.equal(states(encoder), before), "B is 0 at first"
        moved(encoder)
        after = states(encoder)
        assert (after - before).abs().max() > 0.01, name
        with without_adapters(encoder):
            assert torch.equal(states(encoder), before)
        flipped = {"fan_in_fan_out": name == "gpt2"}
        config = LoraConfig(r=4, lora_alpha=8, target_modules=targets, **flipped)
        theirs = moved(get_peft_model(plain, config)).eval()
        torch.testing.assert_close(after, states(theirs), rtol=0, atol=1e-5)
        whole = plain_copy(encoder)
        assert not has_adapters(whole) and has_adapters(encoder)
        assert type(whole) is type(encoder) and whole.state_dict().keys() != encoder.state_dict()
        torch.testing.assert_close(states(whole), after, rtol=0, atol=1e-5)


def test_transposed_layers_are_refused_in_4_bits(tmp_path):
    pytest.importorskip("bitsandbytes")
    encoder = AutoModel.from_pretrained(gpt2(tmp_path))
    with pytest.raises(BenchError, match="no linear layer but a transposed one") as refused:
        in_four_bits(encoder)
    assert "base_dtype=bf16" in str(refused.value.hint)


def test_initial_weights_follow_from_the_seed_alone(qwen3):
    def drawn(seed: int, other: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(other)
        encoder = AutoModel.from_pretrained(qwen3)
        add_adapters(encoder, SETTINGS, seed)
        return {name: p for name, p in encoder.named_parameters() if "lora_A" in name}

    first = drawn(1, 2)
    again = drawn(1, 3)
    another = drawn(2, 2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], another[name]) for name in first)


def test_targets_are_layers_of_the_encoder_or_refused(qwen3, tiny):
    encoder = AutoModel.from_pretrained(qwen3)
    names = {name.rpartition(".")[2] for name in find_layers(encoder, "all")}
    of_attention = {"q_proj", "k_proj", "v_proj", "o_proj"}
    assert names == of_attention | {"gate_proj", "up_proj", "down_proj"}
    assert len(find_layers(encoder, "q_proj+v_proj")) == 4
    with pytest.raises(BenchError, match="no linear layer named 'query'") as refused:
        find_layers(encoder, "query+v_proj")
    assert "down_proj, gate_proj" in str(refused.value.hint)
    bert = AutoModel.from_pretrained(tiny, add_pooling_layer=True)
    assert not [name for name in find_layers(bert, "all") if "pooler" in name]


def test_adapters_are_float32_on_a_base_in_bfloat16_which_is_scored_in_float32(qwen3, llama, tiny):
    for folder in (qwen3, llama, tiny):
        encoder = AutoModel.from_pretrained(folder, dtype=torch.bfloat16).eval()
        hold_in(encoder, "bf16")
        add_adapters(encoder, SETTINGS, seed=1)
        kinds = {p.dtype for name, p in encoder.named_parameters() if KEY in name}
        assert kinds == {torch.float32}
        moved(encoder)
        assert states(encoder).dtype == torch.float32
        exact = plain_copy(encoder)
        with torch.inference_mode(), widened_weights(encoder):
            found = states(encoder)
        torch.testing.assert_close(found, states(exact), rtol=0, atol=1e-5)
        assert (states(encoder) - found).abs().max() > 1e-3, "bfloat16 rounds"
        held = [p for name, p in encoder.named_parameters() if KEY not in name]
        assert {p.dtype for p in held} == {torch.bfloat16}, "the weights are as they were"


def test_a_decoder_that_looks_both_ways_is_one_without_a_mask_and_stays_so(qwen3, llama, tmp_path):
    for folder in (qwen3, llama):
        encoder = AutoModel.from_pretrained(folder).eval()
        look_both_ways(encoder, "it")
        # the same by hand: eager attention, and a mask that hides the padding alone
        plain = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        hidden = (1.0 - MASK[:, None, None, :].float()) * torch.finfo(torch.float32).min
        with torch.no_grad():
            wanted = plain(input_ids=IDS, attention_mask=hidden.expand(-1, 1, 5, -1))[0]
        wanted = wanted * MASK.unsqueeze(-1)
        torch.testing.assert_close(states(encoder), wanted, rtol=0, atol=1e-5)
        look_both_ways(encoder, "it")  # again changes nothing
        encoder.save_pretrained(tmp_path / "saved")
        again = AutoModel.from_pretrained(tmp_path / "saved").eval()
        torch.testing.assert_close(states(again), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("whole", "values"),
    [(True, {}), (False, {"use_rslora": True, "alpha_pattern": {"q_proj": 3}})],
)
def test_a_folder_of_peft_is_its_base_with_the_adapter_merged(qwen3, tmp_path, whole, values):
    kind = AutoModelForCausalLM if whole else AutoModel
    theirs = adapter_of(kind, qwen3, tmp_path / "adapter", **values)
    found = load(resolve(str(tmp_path / "adapter")))
    encoder = theirs.base_model.model.model if whole else theirs.base_model.model
    torch.testing.assert_close(states(found.encoder), states(encoder), rtol=0, atol=1e-5)
    assert found.name == str(tmp_path / "adapter")
    assert (states(found.encoder) - states(AutoModel.from_pretrained(qwen3))).abs().max() > 0.01
    assert resolve(str(tmp_path / "adapter")).revision != resolve(qwen3).revision


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_model_name_or_path": "/nowhere/qwen9"}, "an adapter of /nowhere/qwen9"),
        ({"use_dora": True}, "DoRA"),
    ],
)
def test_other_adapters_are_refused_in_one_line(qwen3, tmp_path, change, message):
    folder = tmp_path / "adapter"
    adapter_of(AutoModel, qwen3, folder)
    settings = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(settings | change))
    with pytest.raises(NotAModel, match=message) as refused:
        load(resolve(str(folder)))
    assert "\n" not in str(refused.value)


def test_an_adapter_of_other_layers_or_shapes_is_refused(qwen3, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "adapter"
    adapter_of(AutoModel, qwen3, folder)
    file = folder / "adapter_model.safetensors"
    tensors = load_file(file)
    name = next(name for name in tensors if "lora_A" in name)
    for changed, message in (
        ({key: t for key, t in tensors.items() if key != name}, "lacks 1 tensor,"),
        (tensors | {name: tensors[name][:, 1:].contiguous()}, "has shape"),
        (tensors | {"base_model.model.x.weight": torch.ones(2)}, "has no place for"),
        (
            {key.replace("layers.0", "layers.9"): t for key, t in tensors.items()},
            "lacks 4 tensors",
        ),
        ({key: t for key, t in tensors.items() if "down_proj" not in key}, "lacks 4 tensors"),
        (tensors | {name: tensors[name] * float("nan")}, "has NaN"),
    ):
        save_file(changed, file)
        with pytest.raises(NotAModel, match=message):
            load(resolve(str(folder)))
