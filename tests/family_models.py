"""Tiny random models of every family that docs/backbones.md speaks of: 2 layers, 32 wide, an MLM head, a vocabulary of their own.

Configurations differ from the real ones in size alone; where a family's base model sets something that changes what an
encoder computes (DeBERTa-v3's relative positions, ModernBERT's dropout of 0), it is set here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from models import TEXT, sentences, tiny_roberta
from torch import nn

VOCABULARY = 600
SIZES = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=128,
)


def _text() -> list[str]:
    return [TEXT, *sentences(200), 'This sentence : " " means . of']


def _word_pieces(specials: list[str]) -> dict[str, int]:
    from tokenizers import BertWordPieceTokenizer

    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(
        _text(), vocab_size=VOCABULARY, min_frequency=1, special_tokens=specials
    )
    return dict(trained.get_vocab())


def _byte_pairs(specials: list[str]) -> Any:
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(_text(), vocab_size=VOCABULARY, special_tokens=specials)
    return trained


def _unigrams(specials: list[str]) -> list[tuple[str, float]]:
    import json

    from tokenizers import SentencePieceUnigramTokenizer

    trained = SentencePieceUnigramTokenizer()
    trained.train_from_iterator(
        _text(),
        vocab_size=VOCABULARY,
        special_tokens=specials,
        unk_token="<unk>" if "<unk>" in specials else "[UNK]",
    )
    return [(piece, score) for piece, score in json.loads(trained.to_str())["model"]["vocab"]]


BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bert() -> tuple[Any, Any]:
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    tokenizer = BertTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    return tokenizer, BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **SIZES))


def distilbert() -> tuple[Any, Any]:
    from transformers import DistilBertConfig, DistilBertForMaskedLM, DistilBertTokenizerFast

    tokenizer = DistilBertTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    config = DistilBertConfig(
        vocab_size=len(tokenizer),
        dim=32,
        n_layers=2,
        n_heads=2,
        hidden_dim=64,
        max_position_embeddings=128,
        pad_token_id=0,
    )
    return tokenizer, DistilBertForMaskedLM(config)


def mpnet() -> tuple[Any, Any]:
    from transformers import MPNetConfig, MPNetForMaskedLM, MPNetTokenizerFast

    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "[UNK]",
        "<mask>",
    ]  # the order of microsoft/mpnet-base, whose mask is the last of all
    tokenizer = MPNetTokenizerFast(vocab=_word_pieces(pieces))
    config = MPNetConfig(
        vocab_size=len(tokenizer), **SIZES | {"max_position_embeddings": 130}, pad_token_id=1
    )
    return tokenizer, MPNetForMaskedLM(config)


def electra() -> tuple[Any, Any]:
    from transformers import ElectraConfig, ElectraForPreTraining, ElectraTokenizerFast

    tokenizer = ElectraTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    return tokenizer, ElectraForPreTraining(
        ElectraConfig(vocab_size=len(tokenizer), embedding_size=16, **SIZES)
    )


def electra_generator() -> tuple[Any, Any]:
    from transformers import ElectraConfig, ElectraForMaskedLM, ElectraTokenizerFast

    tokenizer = ElectraTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    return tokenizer, ElectraForMaskedLM(
        ElectraConfig(vocab_size=len(tokenizer), embedding_size=16, **SIZES)
    )


def deberta() -> tuple[Any, Any]:
    from transformers import (
        DebertaV2Config,
        DebertaV2ForTokenClassification,
        DebertaV2TokenizerFast,
    )

    tokenizer = DebertaV2TokenizerFast(
        vocab=_unigrams(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    )
    config = DebertaV2Config(  # as microsoft/deberta-v3-base, whose checkpoint is a discriminator
        vocab_size=len(tokenizer),
        **SIZES,
        relative_attention=True,
        position_buckets=16,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        max_relative_positions=-1,
        type_vocab_size=0,
        layer_norm_eps=1e-7,
    )
    return tokenizer, DebertaV2ForTokenClassification(config)


def modernbert() -> tuple[Any, Any]:
    from tokenizers.processors import TemplateProcessing
    from transformers import ModernBertConfig, ModernBertForMaskedLM, PreTrainedTokenizerFast

    inner = _byte_pairs([*BERT_SPECIALS])
    ids = {token: inner.token_to_id(token) for token in BERT_SPECIALS}
    inner._tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(t, ids[t]) for t in ("[CLS]", "[SEP]")],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner._tokenizer,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        unk_token="[UNK]",
    )
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        **SIZES,
        pad_token_id=ids["[PAD]"],
        bos_token_id=ids["[CLS]"],
        eos_token_id=ids["[SEP]"],
        cls_token_id=ids["[CLS]"],
        sep_token_id=ids["[SEP]"],
        local_attention=128,
    )
    return tokenizer, ModernBertForMaskedLM(config)


def xlm_roberta() -> tuple[Any, Any]:
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM, XLMRobertaTokenizerFast

    pieces = _unigrams(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer = XLMRobertaTokenizerFast(vocab=[*pieces, ("<mask>", 0.0)])
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        **SIZES | {"max_position_embeddings": 130},
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    return tokenizer, XLMRobertaForMaskedLM(config)


def written(make: Callable[[], tuple[Any, Any]], folder: Path) -> str:
    state = torch.get_rng_state()
    torch.manual_seed(0)
    tokenizer, model = make()
    for parameter in model.parameters():  # the library's start is so flat that mistakes hardly show
        nn.init.normal_(parameter, std=0.1) if parameter.ndim > 1 else None
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    torch.set_rng_state(state)
    return str(folder)


FAMILIES: dict[str, Callable[[Path], str]] = {
    "bert": partial(written, bert),
    "roberta": tiny_roberta,
    "xlm-roberta": partial(written, xlm_roberta),
    "electra": partial(written, electra),
    "electra-generator": partial(written, electra_generator),
    "distilbert": partial(written, distilbert),
    "mpnet": partial(written, mpnet),
    "deberta-v2": partial(written, deberta),
    "modernbert": partial(written, modernbert),
}
