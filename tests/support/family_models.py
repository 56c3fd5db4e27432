"""Tiny random models of every family that docs/training.md speaks of: 2 layers, 32 wide, an MLM
head, a vocabulary of their own.

Configurations differ from the real ones in size alone; if a family's base model sets something that
changes its computation (DeBERTa-v3's relative positions, ModernBERT's dropout of 0), it is set
here, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from models import TEXT, sentences, tiny_roberta
from torch import nn
from vocabularies import unigrams, word_pieces

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
    from tokenizers.pre_tokenizers import BertPreTokenizer

    text = " ".join(_text()).lower()
    words = sorted({word for word, _ in BertPreTokenizer().pre_tokenize_str(text)})
    # the other half is split into pieces
    return word_pieces(specials, words[::2])


def _byte_pairs(specials: list[str]) -> Any:
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(_text(), vocab_size=VOCABULARY, special_tokens=specials)
    return trained


def _unigrams(specials: list[str]) -> list[tuple[str, float]]:
    from tokenizers import SentencePieceUnigramTokenizer

    trained = SentencePieceUnigramTokenizer()
    trained.train_from_iterator(
        _text(),
        vocab_size=VOCABULARY,
        special_tokens=specials,
        unk_token="<unk>" if "<unk>" in specials else "[UNK]",
    )
    return unigrams(trained, specials)


BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def _known(name: str, tokenizer: Any, head: str = "ForMaskedLM", **config: Any) -> tuple[Any, Any]:
    """Return the tokenizer, and a model of the family with its vocabulary."""
    made = getattr(transformers, f"{name}Config")(vocab_size=len(tokenizer), **config)
    return tokenizer, getattr(transformers, f"{name}{head}")(made)


def bert() -> tuple[Any, Any]:
    tokenizer = transformers.BertTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    return _known("Bert", tokenizer, **SIZES)


def distilbert() -> tuple[Any, Any]:
    tokenizer = transformers.DistilBertTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    sizes = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}
    return _known("DistilBert", tokenizer, **sizes, max_position_embeddings=128, pad_token_id=0)


def mpnet() -> tuple[Any, Any]:
    pieces = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]  # as microsoft/mpnet-base, mask last
    tokenizer = transformers.MPNetTokenizerFast(vocab=_word_pieces(pieces))
    return _known("MPNet", tokenizer, **SIZES | {"max_position_embeddings": 130}, pad_token_id=1)


def electra(head: str = "ForPreTraining") -> tuple[Any, Any]:
    tokenizer = transformers.ElectraTokenizerFast(vocab=_word_pieces(BERT_SPECIALS))
    return _known("Electra", tokenizer, head, embedding_size=16, **SIZES)


def deberta() -> tuple[Any, Any]:
    """Save a model like microsoft/deberta-v3-base: its checkpoint is a discriminator."""
    pieces = _unigrams(["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    relative = {"relative_attention": True, "position_buckets": 16, "norm_rel_ebd": "layer_norm"}
    relative |= {"share_att_key": True, "pos_att_type": ["p2c", "c2p"]}
    relative |= {"position_biased_input": False, "max_relative_positions": -1}
    sizes = {**SIZES, **relative, "type_vocab_size": 0, "layer_norm_eps": 1e-7}
    tokenizer = transformers.DebertaV2TokenizerFast(vocab=pieces)
    return _known("DebertaV2", tokenizer, "ForTokenClassification", **sizes)


def modernbert() -> tuple[Any, Any]:
    from tokenizers.processors import TemplateProcessing

    inner = _byte_pairs([*BERT_SPECIALS])
    ids = {token: inner.token_to_id(token) for token in BERT_SPECIALS}
    inner._tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(t, ids[t]) for t in ("[CLS]", "[SEP]")],
    )
    names = {f"{token[1:-1].lower()}_token": token for token in BERT_SPECIALS}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner._tokenizer, **names)
    first = ids["[CLS]"]
    last = ids["[SEP]"]
    pad = ids["[PAD]"]
    ends = {"bos_token_id": first, "cls_token_id": first, "eos_token_id": last}
    ends |= {"sep_token_id": last, "pad_token_id": pad}
    return _known("ModernBert", tokenizer, **SIZES, **ends, local_attention=128)


def xlm_roberta() -> tuple[Any, Any]:
    pieces = [*_unigrams(["<s>", "<pad>", "</s>", "<unk>"]), ("<mask>", 0.0)]
    sizes = SIZES | {"max_position_embeddings": 130, "type_vocab_size": 1}
    ends = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    tokenizer = transformers.XLMRobertaTokenizerFast(vocab=pieces)
    return _known("XLMRoberta", tokenizer, **sizes, **ends)


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
    "electra-generator": partial(written, partial(electra, "ForMaskedLM")),
    "distilbert": partial(written, distilbert),
    "mpnet": partial(written, mpnet),
    "deberta-v2": partial(written, deberta),
    "modernbert": partial(written, modernbert),
}
