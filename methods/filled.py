"""Sentences filled into a template, and the result tokenised once.

Templates are read like this if no authors tokenised them in pieces: in most vocabularies the
characters on both sides of a gap can be one token (``."`` in a byte-level one), and the pieces of a
SentencePiece vocabulary each begin with a blank of their own. A sentence that is too long is cut as
text, behind one of its own tokens, and filled in again: the template is never cut.

The templates of BERT's WordPiece, in which pieces and filled text agree, and of RoBERTa, for which
the authors' pieces are the method, stay in pieces (:mod:`methods.templates`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.method import Backbone, BenchError, Ids

SENTENCE = "{s}"
MASK = "{m}"
SLOT = "{p}"
PLAIN = ("word", "x", "A", "1")
"""Sentences that seldom share a token with the text around them."""
PACKED = -1
"""The first id of a packed row."""


def keeps_pieces(backbone: Backbone) -> bool:
    """Say if a template is tokenised in pieces on this backbone.

    It is with BERT's WordPiece, and on RoBERTa with its byte-level BPE.
    """
    backend = getattr(backbone.tokenizer, "backend_tokenizer", None)
    kind = type(getattr(backend, "model", None)).__name__
    splitter = type(getattr(backend, "pre_tokenizer", None)).__name__
    if kind == "WordPiece":
        return splitter == "BertPreTokenizer"
    return backbone.family == "roberta" and kind == "BPE" and splitter == "ByteLevel"


@dataclass(frozen=True)
class Filling:
    """The two texts around a sentence.

    ``masks`` and ``slots`` are places of characters in ``first`` + ``last``.
    """

    first: str
    last: str
    masks: tuple[int, ...]
    slots: tuple[int, ...]

    @classmethod
    def of(cls, text: str, backbone: Backbone) -> Filling:
        """Return the filling of a template text; learned vectors get tokens of padding."""
        tokens = {
            MASK: str(backbone.tokenizer.mask_token or ""),
            SLOT: str(backbone.tokenizer.pad_token or ""),
        }
        if SLOT in text and backbone.tokenizer.pad_token is None:
            raise BenchError(
                f"the tokenizer of {backbone.name} has no padding token, "
                "in whose place learned vectors stand",
                "take a backbone that has one",
            )
        pieces = []
        places: dict[str, list[int]] = {MASK: [], SLOT: []}
        length = 0
        for piece in text.split(SENTENCE):
            made = ""
            for part in re.split(r"(\{m\}|\{p\})", piece):
                if part in places:
                    places[part].append(length + len(made))
                made += tokens.get(part, part)
            pieces.append(made)
            length += len(made)
        first, last = pieces
        return cls(first, last, tuple(places[MASK]), tuple(places[SLOT]))

    def around(self, sentence: str) -> str:
        return self.first + sentence + self.last

    def place(self, place: int, sentence: str) -> int:
        """Return the place in the filled text of a character of ``first`` + ``last``."""
        return place if place < len(self.first) else place + len(sentence)


@dataclass(frozen=True)
class FilledRow:
    """The token ids of one filled template, special tokens included.

    Those from ``start`` to before ``stop`` hold the sentence.
    """

    ids: list[int]
    start: int
    stop: int
    # the position of the template's last mask token
    mask: int
    # the positions of its learned vectors
    slots: list[int] = field(default_factory=list)

    def packed(self) -> list[int]:
        """Return one flat list of numbers, the form in which encoding carries rows."""
        return [PACKED, self.start, self.stop, self.mask, len(self.slots), *self.slots, *self.ids]

    @classmethod
    def unpacked(cls, row: Ids) -> FilledRow:
        _, start, stop, mask, slots, *rest = (int(number) for number in row)
        return cls(rest[slots:], start, stop, mask, rest[:slots])


def fill(
    sentences: Sequence[str],
    fillings: Sequence[Filling],
    backbone: Backbone,
    longest: int | None = None,
) -> list[FilledRow]:
    """Put sentence i into ``fillings[i]``, cut to ``longest`` tokens and to the limit of the
    backbone.
    """
    pairs = list(zip(fillings, sentences, strict=True))
    encodings = backbone.encodings([filling.around(sentence) for filling, sentence in pairs])
    rows = []
    for encoding, (filling, sentence) in zip(encodings, pairs, strict=True):
        rows.append(fitted(encoding, filling, sentence, backbone, longest))
    return rows


def fitted(
    encoding: Any, filling: Filling, sentence: str, backbone: Backbone, longest: int | None
) -> FilledRow:
    """Return the row of one encoded text.

    As long as it is too long, its sentence is cut and the text is encoded again.
    """
    while True:
        begin = len(filling.first)
        start, stop = sentence_tokens(encoding, begin, begin + len(sentence))
        room = backbone.max_tokens - (len(encoding.ids) - (stop - start))
        allowed = room if longest is None else min(longest, room)
        if stop - start <= allowed or not sentence:
            break
        end = 0
        if allowed > 0:
            end = encoding.offsets[start + allowed - 1][1] - begin
        sentence = sentence[: max(0, min(end, len(sentence) - 1))]
        (encoding,) = backbone.encodings([filling.around(sentence)])
    masks = [token_at(encoding, filling.place(place, sentence)) for place in filling.masks]
    slots = [token_at(encoding, filling.place(place, sentence)) for place in filling.slots]
    return FilledRow(list(encoding.ids), start, stop, masks[-1], slots)


def sentence_tokens(encoding: Any, begin: int, end: int) -> tuple[int, int]:
    """Return (start, stop) of the tokens that hold a character from ``begin`` to before ``end``."""
    inside = []
    behind: list[int] = []
    spoken = []  # tokens of the text, without those that the tokenizer adds
    for number, (a, b) in enumerate(encoding.offsets):
        if encoding.special_tokens_mask[number] and a == b:
            continue
        spoken.append(number)
        if a < end and b > begin:
            inside.append(number)
        elif a >= end:
            behind.append(number)
    if inside:
        return inside[0], inside[-1] + 1
    gap = behind[0] if behind else spoken[-1] + 1
    return gap, gap


def token_at(encoding: Any, place: int) -> int:
    """Return the token that holds the character at a place."""
    for number, (a, b) in enumerate(encoding.offsets):
        if a <= place < b:
            return number
    raise BenchError(
        "the template's mask token is no token of this backbone's vocabulary",
        "take another backbone: bench doctor NAME says what its tokenizer has",
    )


def template_row(filling: Filling, backbone: Backbone) -> FilledRow:
    """Return a template around a sentence that shares no token with it, if there is one."""
    for sentence in PLAIN:
        (encoding,) = backbone.encodings([filling.around(sentence)])
        begin = len(filling.first)
        end = begin + len(sentence)
        start, stop = sentence_tokens(encoding, begin, end)
        before = filling.around(sentence)[encoding.offsets[start][0] : begin]
        if stop > start and not before.strip() and encoding.offsets[stop - 1][1] <= end:
            break
    return fitted(encoding, filling, sentence, backbone, None)
