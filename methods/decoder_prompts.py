"""Prompts in words around a sentence; the decoder's state at the last token is the vector.

A prompt is a text with [X] for the sentence. The sentence is filled in and the whole tokenised
once: a vocabulary of byte pairs may have one token for a full stop and the quotation mark behind
it. A sentence that is too long is cut as text, behind one of its own tokens, and filled in again:
the prompt is never cut.

The authors of this family clean the text that is scored, and not the text that trains. How is a
recipe value (``clean_at_test``), which the record names:

* ``prompteol``: a full stop behind a sentence that ends in none of . ? " ', then single for double
  quotation marks, then a full stop for a question mark at the end;
* ``bellm``: the full stop and the question mark, and quotation marks as they are;
* ``none``: the text as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.method import Backbone, BenchError
from bench.method.prompts import PLACE
from bench.methods.filled import sentence_tokens

CLEANINGS = ("prompteol", "bellm", "none")
ENDINGS = (".", "?", '"', "'")
"""Characters behind which no full stop is put."""


def clean_text(text: str, kind: str) -> str:
    """Return the text as it is scored: see ``clean_at_test`` above.

    Source: kongds/scaling_sentemb evaluation.py:192-201; 4AI/BeLLM eval_sts.py:136-138.
    """
    if kind == "none":
        return text
    if text and not text.endswith(ENDINGS):
        text += "."
    if kind == "prompteol":
        text = text.replace('"', "'")
    if text.endswith("?"):
        text = text[:-1] + "."
    return text


def check_prompt_text(key: str, text: object, *, places: int = 1) -> None:
    """Raise BenchError if a prompt does not have the sentence's place so many times."""
    if str(text).count(PLACE) != places:
        times = {1: "once", 2: "twice"}[places]
        raise BenchError(
            f"{key}={text}: {PLACE} stands for the sentence, {times}",
            f'--set {key}=\'This sentence : "{PLACE}" means in one word:"\'',
        )


def fill_prompt(prompt: str, sentence: str) -> str:
    """Put a sentence into a prompt; white space at both ends of the result is left out."""
    return prompt.replace(PLACE, sentence).strip()


def prompt_encodings(
    prompt: str, sentences: Sequence[str], backbone: Backbone, longest: int | None = None
) -> list[Any]:
    """Return the encoding of each filled prompt, special tokens included.

    Of a sentence at most ``longest`` tokens are kept, and as many as the backbone has room for.
    Raises BenchError if the prompt alone does not fit.
    """
    kept = shortened(sentences, backbone, longest)
    filled = backbone.encodings([fill_prompt(prompt, sentence) for sentence in kept])
    found = []
    for sentence, encoding in zip(kept, filled, strict=True):
        found.append(fitted_encoding(prompt, sentence, encoding, backbone))
    return found


def shortened(sentences: Sequence[str], backbone: Backbone, longest: int | None) -> list[str]:
    """Return each sentence cut behind its own token number ``longest``; special tokens do not
    count.
    """
    if longest is None:
        return list(sentences)
    kept = []
    encodings = backbone.encodings(sentences)
    for sentence, encoding in zip(sentences, encodings, strict=True):
        start, stop = sentence_tokens(encoding, 0, len(sentence))
        if stop - start > longest:
            sentence = sentence[: encoding.offsets[start + longest - 1][1]]
        kept.append(sentence)
    return kept


def fitted_encoding(prompt: str, sentence: str, encoding: Any, backbone: Backbone) -> Any:
    """Return the encoding of a filled prompt that fits: as long as it does not, the sentence loses
    its end.
    """
    while len(encoding.ids) > backbone.max_tokens:
        if not sentence:
            raise BenchError(
                f"the prompt has {len(encoding.ids)} tokens, and {backbone.name} takes "
                f"{backbone.max_tokens}: no sentence has room",
                "a shorter prompt, or a backbone with more positions",
            )
        (own,) = backbone.encodings([sentence])
        start, stop = sentence_tokens(own, 0, len(sentence))
        left = stop - start - (len(encoding.ids) - backbone.max_tokens)
        end = own.offsets[start + left - 1][1] if left > 0 else 0
        sentence = sentence[: min(end, len(sentence) - 1)]
        (encoding,) = backbone.encodings([fill_prompt(prompt, sentence)])
    return encoding
