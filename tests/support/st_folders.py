"""sentence-transformers folders of every kind, tiny and random, as that library saves them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from models import TEXT, sentences
from vocabularies import unigrams, word_pieces

SPECIALS = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
WORDS = 'The Film was long slow and in the end worth every minute café naïve “ ” " . , query: a'


def word_tokenizer(*, ends: bool = True, unigram: bool = False) -> Any:
    """A tokenizer of whole words (or a unigram one), made from the words of the tests; ``ends``:
    <s> and </s> around a text.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    texts = [TEXT, TEXT.title(), WORDS, *sentences(40)]
    if unigram:
        trained = Tokenizer(models.Unigram())
        trained.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=list(SPECIALS), unk_token="<unk>"
        )
        trained.train_from_iterator(texts, trainer)
        unknown = SPECIALS.index("<unk>")
        fast = Tokenizer(models.Unigram(unigrams(trained, SPECIALS), unk_id=unknown))
        fast.pre_tokenizer = pre_tokenizers.Metaspace()
    else:
        blanks = pre_tokenizers.BertPreTokenizer()
        words = [word for word, _ in blanks.pre_tokenize_str(" ".join(texts))]
        fast = Tokenizer(models.WordPiece(word_pieces(SPECIALS, words), unk_token="<unk>"))
        fast.pre_tokenizer = blanks
    fast.add_special_tokens(list(SPECIALS))
    if ends:
        pair = [(token, fast.token_to_id(token)) for token in ("<s>", "</s>")]
        fast.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=pair)
    named = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    if ends:
        named |= {"bos_token": "<s>", "eos_token": "</s>"}
    return PreTrainedTokenizerFast(tokenizer_object=fast, **named)


def spread(model: Any, seed: int = 0) -> Any:
    """Return the model with weights so far apart that different tokens have different states."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def bert_folder(folder: Path, tokenizer: Any = None, **sizes: Any) -> Path:
    """Save a BERT of two layers, 16 wide, with a tokenizer."""
    from transformers import BertConfig, BertModel

    tokenizer = tokenizer or word_tokenizer()
    shape: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"intermediate_size": 32, "max_position_embeddings": 64} | sizes
    config = BertConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **shape)
    spread(BertModel(config, add_pooling_layer=False)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def st_folder(
    folder: Path,
    transformer: Path,
    *,
    pooling: str = "mean",
    change: Callable[[Any], None] = lambda model: None,
    **options: Any,
) -> Path:
    """Save a SentenceTransformer made from a transformer's folder and changed.

    ``options`` go to its Transformer module.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    first = Transformer(str(transformer))
    size = first.get_embedding_dimension()
    model = SentenceTransformer(modules=[first, Pooling(size, pooling)], device="cpu")
    change(model)
    model.save(str(folder), create_model_card=False)
    edit_json(folder / "sentence_bert_config.json", **options)
    return folder


def edit_json(file: Path, **changes: Any) -> None:
    """Change keys of a JSON file; None removes one."""
    content = json.loads(file.read_text()) if file.exists() else {}
    content |= changes
    file.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
