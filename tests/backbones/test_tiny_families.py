"""Settings and facts of families that use other names than BERT's in configs and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from models import tiny_roberta

from bench.backbones import load, resolve
from bench.backbones.dropout import (
    check_dropout_arrived,
    dropout_in_use,
    own_dropout,
    set_dropout,
)
from bench.base.errors import NotAModel

BERT = {
    "vocab_size": 600,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
    "pad_token_id": 1,
}
GPT2 = {"vocab_size": 600, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
T5 = {"vocab_size": 600, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
DISTIL = {"vocab_size": 600, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Model", GPT2),
    "t5": ("T5EncoderModel", T5),
    "bloom": ("BloomModel", {"vocab_size": 600, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "llama": ("LlamaModel", BERT | {"num_key_value_heads": 2}),
    "distilbert": ("DistilBertModel", DISTIL),
    "mpnet": ("MPNetModel", BERT),
    "longformer": ("LongformerModel", BERT | {"attention_window": [8, 8]}),
    "esm": ("EsmModel", BERT | {"mask_token_id": 4}),
    "deberta-v2": ("DebertaV2Model", BERT),
    "xlm": ("XLMModel", {"vocab_size": 600, "emb_dim": 32, "n_layers": 2, "n_heads": 4}),
}


def encoder(kind: str, dropout: float | None = None) -> Any:
    name, sizes = KINDS[kind]
    cls = getattr(transformers, name)
    config = cls.config_class(**sizes)
    if dropout is not None:
        set_dropout(config, dropout)
    torch.manual_seed(0)
    return cls(config)


@pytest.mark.parametrize("kind", ["gpt2", "t5", "distilbert", "longformer", "deberta-v2", "xlm"])
def test_a_dropout_arrives_in_every_part_of_an_encoder(kind: str) -> None:
    made = encoder(kind, 0.25)
    before = torch.get_rng_state()
    check_dropout_arrived(kind, made, 0.25)
    assert set().union(*dropout_in_use(made).values()) == {0.25}
    assert torch.equal(torch.get_rng_state(), before)
    check_dropout_arrived(kind, encoder(kind, 0.0), 0.0)
    assert own_dropout(encoder(kind, 0.25).config.to_dict()) == 0.25


def test_a_dropout_that_stays_out_is_refused() -> None:
    made = encoder("gpt2", 0.25)
    made.h[1].mlp.dropout.p = 0.1
    with pytest.raises(NotAModel, match="dropout=0.25 does not arrive in all of x: .* has 0.1"):
        check_dropout_arrived("x", made, 0.25)
    nothing = transformers.MambaModel(
        transformers.MambaConfig(vocab_size=99, hidden_size=16, num_hidden_layers=1)
    )
    with pytest.raises(NotAModel, match="has no dropout"):
        check_dropout_arrived("x", nothing, 0.25)


HEADS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt_neox": ("GPTNeoXForCausalLM", BERT),
    "albert, pretraining": ("AlbertForPreTraining", BERT | {"embedding_size": 16}),
    "bigbird": ("BigBirdForQuestionAnswering", BERT),
    "t5, whole": ("T5ForConditionalGeneration", T5),
}


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_of_any_name_is_left_out(kind: str, tmp_path: Path) -> None:
    name, sizes = HEADS[kind]
    cls = getattr(transformers, name)
    torch.manual_seed(0)
    model = cls(cls.config_class(**sizes))
    tiny_roberta(tmp_path / "tokenizer")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "tokenizer")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    backbone = load(resolve(str(tmp_path / "model")))
    states = backbone.encoder(input_ids=torch.tensor([[5, 6, 7]])).last_hidden_state
    assert states.shape == (1, 3, 32)
