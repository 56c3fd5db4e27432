"""Templates: a text around a sentence, with one mask token; its last state is the sentence's
vector.

A template is written with ``{s}`` for the sentence, ``{m}`` for the mask token and ``{p}`` for each
learned vector directly before the mask: ``This sentence of "{s}" means{m}.`` With BERT's WordPiece
and on RoBERTa it is tokenised in three pieces, as the authors do (before the sentence, the
sentence, after it), and the ids are joined; with every other vocabulary the sentence is filled in
and the text tokenised once (methods/filled.py). Either way the sentence is cut and never the
template, and the template's own mask is known by its place, whatever the sentence itself contains.

A template's bias (its [MASK] state without a sentence) is computed in two ways:

* PromptBERT: the template with nothing in it, and the part behind the gap at the positions that it
  has behind a sentence of l tokens: :func:`empty` and :func:`gaps`;
* ConPVP: the same sequence; only the template's tokens can be attended to. They never see the
  others, so that a pass over them alone, at their own positions, gives the same states:
  :func:`keep_tokens`.

Shapes: n rows, T tokens (padded), H hidden size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bench.method import Backbone, BenchError, Features, Ids, ModuleFile, Portable, TorchMethod, pad
from bench.method.features import constant
from bench.methods.filled import (
    MASK,
    PACKED,
    SENTENCE,
    SLOT,
    FilledRow,
    Filling,
    fill,
    keeps_pieces,
    template_row,
)
from bench.methods.pooling import Head
from bench.methods.travels import FOLDER


def check_text(text: object) -> tuple[str, str]:
    """Split a template text into the parts before and after the sentence.

    Raises BenchError if it is no template.
    """
    parts = str(text).split(SENTENCE)
    if len(parts) != 2 or str(text).count(MASK) != 1:
        hint = (
            f"write {SENTENCE} for the sentence and {MASK} for the mask token, once each: "
            f'This sentence of "{{s}}" means{{m}}.'
        )
        raise BenchError(f"no template: {text}", hint)
    learned = str(text).count(SLOT)
    if SLOT * learned + MASK not in str(text).replace(" ", ""):
        raise BenchError(
            f"a learned vector that is not directly before the mask: {text}",
            f"write {SLOT} for each, all before {MASK}: {SENTENCE}{SLOT}{SLOT}{MASK}",
        )
    return parts[0], parts[1]


def blank_before(text: str) -> str:
    """Return the blank that a template has before its sentence, or nothing.

    A byte-level vocabulary makes it part of the first word if the filled template is tokenised in
    one go.
    """
    before, _ = check_text(text)
    return " " if before.endswith(" ") else ""


@dataclass(frozen=True)
class Template:
    """The ids of a template for one tokenizer."""

    # [CLS] and the tokens before the sentence
    before: tuple[int, ...]
    # the tokens after it, and [SEP]
    after: tuple[int, ...]
    # the mask token's position in before + after
    mask: int
    # number of learned vectors, directly before the mask
    slots: int
    # number of special tokens that open `before` and close `after`
    specials: tuple[int, int]
    # set if the text is filled and tokenised once; None: it is tokenised in pieces
    filling: Filling | None = None

    def __len__(self) -> int:
        return len(self.before) + len(self.after)

    @classmethod
    def of(cls, text: str, backbone: Backbone, *, keep_blank: bool = True) -> Template:
        """Tokenise a template.

        Raises BenchError if ``text`` is none, or leaves the sentence no room.

        ``keep_blank``: a blank at the end of the first piece stays, and is a token of its own in a
        byte-level vocabulary.
        """
        check_text(text)
        if not keeps_pieces(backbone):
            made = cls.filled(text, backbone)
            check_template(text, made, backbone)
            return made
        mask_token = backbone.tokenizer.mask_token or ""
        pad_token = backbone.tokenizer.pad_token or ""
        pieces = []
        for piece in check_text(text):
            pieces.append(piece.replace(MASK, mask_token).replace(SLOT, pad_token))
        first, last = pieces
        mask_id = backbone.mask_id
        opening, closing = backbone.special_tokens()
        before = (*opening, *backbone.ids([first if keep_blank else first.rstrip(" ")])[0])
        after = (*backbone.ids([last])[0], *closing)
        place = (before + after).index(mask_id) if mask_id in before + after else 0
        made = cls(before, after, place, text.count(SLOT), (len(opening), len(closing)))
        check_template(text, made, backbone)
        return made

    @classmethod
    def filled(cls, text: str, backbone: Backbone) -> Template:
        """Return a template that is filled with the text and tokenised once; its last mask gives
        the vector.
        """
        _ = backbone.mask_id  # raises BenchError if there is none
        filling = Filling.of(text, backbone)
        row = template_row(filling, backbone)
        opening, closing = backbone.special_tokens()
        before = tuple(row.ids[: row.start])
        after = tuple(row.ids[row.stop :])
        mask = row.mask
        if mask >= row.stop:
            mask -= row.stop - row.start
        specials = (len(opening), len(closing))
        return cls(before, after, mask, len(filling.slots), specials, filling)


def check_template(text: str, template: Template, backbone: Backbone) -> None:
    """Raise BenchError for a template with other mask tokens than its own, or no room for a
    sentence.
    """
    whole = template.before + template.after
    masks = whole.count(backbone.mask_id)
    if masks != 1 or len(whole) >= backbone.max_tokens:
        raise BenchError(
            f"the template {text} has {masks} mask tokens and {len(whole)} tokens in all",
            f"{MASK} alone stands for the mask token, and {backbone.name} takes "
            f"{backbone.max_tokens} tokens",
        )


def template_ids(
    template: Template, texts: Sequence[str], backbone: Backbone, *, whole_template: bool = False
) -> list[list[int]]:
    """Return the input of :func:`wrap_sentences` for each text: its ids, or the packed row of the
    filled template.
    """
    if template.filling is None:
        return backbone.ids(texts)
    rows = filled_rows(
        texts, [template] * len(texts), backbone, None, whole_template=whole_template
    )
    return [row.packed() for row in rows]


def wrap_sentences(
    ids: Sequence[Ids | str],
    templates: Sequence[Template],
    backbone: Backbone,
    longest: int | None = None,
    *,
    whole_template: bool = False,
) -> Features:
    """Put sentence i into ``templates[i]``, cut to ``longest`` tokens and to the limit of the
    backbone.

    ``ids``: the ids of the sentences, for templates in pieces; for filled templates the sentences
    themselves, or the results of :func:`template_ids`. ``whole_template``: a filled sentence that
    shares a token with the template is joined in pieces.

    Besides input_ids and attention_mask, the features have

    * mask_position (n,), the position of the template's mask;
    * position_ids (n, T), because a padding token inside the text would mislead RoBERTa's own;
    * sentence_mask (n, T); prompt_mask (n, T), 1 on the template's tokens, 0 on [CLS], sentence,
      [SEP], padding;
    * slot (n, T), k at the k-th learned vector, counted from 1, else 0;
    * numbers that would else be asked of a GPU: template_tokens, of the longest template;
      gaps, how many lengths the sentences have; gap (n,), which of these, in ascending order, a row
      has.
    """
    rows = filled_rows(ids, templates, backbone, longest, whole_template=whole_template)
    features = pad([row.ids for row in rows], int(backbone.tokenizer.pad_token_id or 0))
    n, T = features["input_ids"].shape
    place = torch.arange(T)
    start = in_a_column([row.start for row in rows])
    stop = in_a_column([row.stop for row in rows])
    opening = in_a_column([template.specials[0] for template in templates])
    closing = in_a_column([template.specials[1] for template in templates])
    total = in_a_column([len(row.ids) for row in rows])
    sentence = (place >= start) & (place < stop)
    inside = (place >= opening) & (place < total - closing)
    slot = torch.zeros(n, T, dtype=torch.int64)
    for number, row in enumerate(rows):
        for k, at in enumerate(row.slots, 1):
            slot[number, at] = k
    # a sentence may share its only token with the template
    lengths = (total - in_a_column([len(template) for template in templates])).clamp_min(0)
    lengths_K, gap = lengths.squeeze(1).unique(return_inverse=True)
    own = [len(row.ids) - (row.stop - row.start) for row in rows]
    return {
        **features,
        "position_ids": (backbone.first_position + place).expand(n, -1).contiguous(),
        "sentence_mask": sentence.long(),
        "prompt_mask": (inside & ~sentence).long(),
        "slot": slot,
        "mask_position": in_a_column([row.mask for row in rows]).squeeze(1),
        "gap": gap,
        "gaps": torch.tensor(len(lengths_K)),
        "template_tokens": torch.tensor(max(own, default=0)),
    }


def in_a_column(numbers: Sequence[int]) -> Tensor:
    """Return a number of each row, (n, 1)."""
    return torch.tensor(numbers, dtype=torch.int64).unsqueeze(1)


def filled_rows(
    cells: Sequence[Ids | str],
    templates: Sequence[Template],
    backbone: Backbone,
    longest: int | None,
    *,
    whole_template: bool,
) -> list[FilledRow]:
    """Return the rows of sentences in templates: of ids that are put between a template's pieces;
    or of texts, of packed rows, or of plain ids, which are read back as text, that are filled in.
    """
    rows: dict[int, FilledRow] = {}
    texts: dict[int, str] = {}
    for number, (cell, template) in enumerate(zip(cells, templates, strict=True)):
        if isinstance(cell, str):
            texts[number] = cell
        elif template.filling is None:
            room = backbone.max_tokens - len(template)
            kept = cell[: room if longest is None else min(longest, room)]
            rows[number] = row_in_pieces(kept, template)
        elif len(cell) and cell[0] == PACKED:
            rows[number] = FilledRow.unpacked(cell)
        else:
            texts[number] = backbone.tokenizer.decode([int(token) for token in cell])
    if texts:
        fillings = [template.filling for template in templates if template.filling is not None]
        made = fill(list(texts.values()), [fillings[number] for number in texts], backbone, longest)
        for (number, text), row in zip(texts.items(), made, strict=True):
            if whole_template:
                row = unmelted(row, text, templates[number], backbone)
            rows[number] = row
    return [rows[number] for number in range(len(cells))]


def row_in_pieces(ids: Ids, template: Template) -> FilledRow:
    """Return the row of a sentence between the pieces of a template."""
    start, stop = len(template.before), len(template.before) + len(ids)
    mask = template.mask + (len(ids) if template.mask >= start else 0)
    slots = list(range(mask - template.slots, mask))
    whole = [*template.before, *map(int, ids), *template.after]
    return FilledRow(whole, start, stop, mask, slots)


def unmelted(row: FilledRow, text: str, template: Template, backbone: Backbone) -> FilledRow:
    """Return the row if every token of its template is in it.

    If not, the sentence is put between the template's tokens, which learned vectors replace one by
    one.
    """
    before, after = list(template.before), list(template.after)
    if row.ids[: row.start] == before and row.ids[row.stop :] == after:
        return row
    return row_in_pieces(backbone.ids([text])[0][: row.stop - row.start], template)


def at_mask(states_nTH: Tensor, features: Features) -> Tensor:
    """Return the state of each row's own mask token, (n, H)."""
    rows = torch.arange(len(states_nTH), device=states_nTH.device)
    return states_nTH[rows, features["mask_position"]]


def keep_tokens(features: Features, kept_nT: Tensor, width: int) -> Features:
    """Return the tokens with ``kept_nT`` 1, moved together; each keeps its position id.

    The mask must be kept. ``width``: how many a row has at most.
    """
    # (n, width): the kept ones first, in their order
    order = kept_nT.argsort(dim=1, descending=True, stable=True)[:, :width]
    moved = {
        key: value.gather(1, order) if value.ndim == 2 else value for key, value in features.items()
    }
    place = kept_nT.cumsum(1).gather(1, features["mask_position"].unsqueeze(1)) - 1
    return {**moved, "attention_mask": kept_nT.gather(1, order), "mask_position": place.squeeze(1)}


def gaps(features: Features, template: Template) -> tuple[Tensor, Tensor]:
    """Return the distinct lengths of the sentences in a template, (K,), and which of them each row
    has, (n,).
    """
    lengths_n = features["attention_mask"].sum(1) - len(template)
    gap_n = features["gap"]
    if template.filling is not None:  # a sentence may share its only token with the template
        lengths_n = lengths_n.clamp_min(0)
    lengths_K = lengths_n.new_zeros(int(features["gaps"])).scatter_(0, gap_n, lengths_n)
    return lengths_K, gap_n


def empty(template: Template, lengths_K: Tensor, first_position: int) -> Features:
    """Return the template with nothing in it, one row for each length.

    Everything behind the gap is shifted by that many positions.
    """
    ids = constant(template.before + template.after, lengths_K.device)
    place = torch.arange(len(template), device=lengths_K.device)
    rows = len(lengths_K)
    shift = lengths_K.unsqueeze(1) * (place >= len(template.before))
    return {
        "input_ids": ids.expand(rows, -1).contiguous(),
        "attention_mask": torch.ones_like(ids).expand(rows, -1).contiguous(),
        "position_ids": first_position + place + shift,
        "mask_position": torch.full((rows,), template.mask, device=lengths_K.device),
    }


def portable_transform(
    transform: Any, backbone: Backbone
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the settings of an MLM head's dense layer and layer norm."""
    dense = next(module for module in transform.modules() if isinstance(module, nn.Linear))
    norm = next(module for module in transform.modules() if isinstance(module, nn.LayerNorm))
    tensors = {
        "transform.weight": dense.weight,
        "transform.bias": dense.bias,
        "transform.norm.weight": norm.weight,
        "transform.norm.bias": norm.bias,
    }
    config = backbone.encoder.config
    activation = getattr(config, "hidden_act", None) or config.activation
    return tensors, {"activation": activation, "eps": norm.eps}


@dataclass(frozen=True)
class LearnedTokens:
    """Vectors that replace tokens of a template."""

    # (k, H)
    vectors: Tensor
    # the places of the k tokens, counted in before + after
    places: Sequence[int]


@dataclass(frozen=True)
class TextEnds:
    """The characters that a method puts around each text before it goes into the template."""

    # put before each text
    blank: str = ""
    # put behind a text that does not end in one of ``endings``
    stop: str = ""
    endings: str = ""
    # white space at the ends does not count when the ending is looked for
    trimmed: bool = False


def portable_template(
    method: TorchMethod,
    template: Template,
    *,
    learned: LearnedTokens | None = None,
    ends: TextEnds | None = None,
    transform: Any = None,
    bias: Tensor | None = None,
    head: Head | None = None,
) -> Portable:
    """Return the parts of a method that scores its template's mask.

    ``transform`` is the MLM head's dense layer and layer norm over the state; ``bias`` (longest
    sentence + 1, H) is subtracted from its result, by the sentence's number of tokens.
    """
    backbone = method.backbone
    ends = ends or TextEnds()
    tensors: dict[str, Tensor] = {}
    vectors_at: list[int] = []
    if learned is not None:
        tensors["vectors"] = learned.vectors
        vectors_at = list(learned.places)
    if bias is not None:
        tensors["bias"] = bias
    transform_settings = None
    if transform is not None:
        tensors_of_transform, transform_settings = portable_transform(transform, backbone)
        tensors |= tensors_of_transform
    filling = None
    if template.filling is not None:
        filling = {
            "first": template.filling.first,
            "last": template.filling.last,
            "mask": template.filling.masks[-1],
            "slots": template.filling.slots,
        }
    settings = {
        "filling": filling,
        "before": template.before,
        "after": template.after,
        "mask": template.mask,
        "first_position": backbone.first_position,
        "blank": ends.blank,
        "stop": ends.stop,
        "endings": ends.endings,
        "trimmed": ends.trimmed,
        "vectors_at": vectors_at,
        "transform": transform_settings,
    }
    reader = ModuleFile(FOLDER / "readers.py", "Templated", settings, tensors)
    layers = () if head is None else (head.portable(),)
    return Portable(
        method.encoder, backbone.tokenizer, backbone.max_tokens, None, layers=layers, reader=reader
    )
