"""Backbones with adapters on another backbone: a run's, or those in a folder that peft saved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.backbones.adapter_folder import find_adapter, has_vocabulary
from bench.backbones.bidirectional import look_both_ways
from bench.backbones.four_bit import in_four_bits
from bench.backbones.stored_adapters import class_of_adapter, merge_folder, merge_run
from bench.backbones.tokenizer import check_vocabulary, read_tokenizer

if TYPE_CHECKING:
    from bench.backbones.model import Backbone
    from bench.backbones.reference import Reference


def put_on_adapters(whole: Backbone, reference: Reference, dtype: str, *, merge: bool) -> Backbone:
    """Make the backbone of ``reference`` from its base, ``whole``, which is in float32.

    The base gets the values that the adapters were trained on: rounded, if the run held them in
    bfloat16 or in 4 bits. ``dtype``: the format of the result. ``merge``: False leaves the
    adapters out. Raises NotAModel if the adapters do not fit.
    """
    assert reference.trained is not None
    folder = reference.trained.parent
    values = reference.adapter_values()
    if find_adapter(folder) is not None:
        encoder = whole.encoder
        merge_folder(encoder, folder, reference.trained)
        whole = _as_trained(whole, folder, reference.name)
    elif merge:
        encoder = _rounded(whole.encoder, str(values.get("base_dtype")))
        merge_run(encoder, reference.trained, values)
    else:
        encoder = whole.encoder
    if dtype == "bf16":
        _narrow(encoder)
    elif dtype == "4bit":
        encoder = in_four_bits(encoder)
    encoder.eval()
    # last: a copy in 4 bits is built anew
    if values.get("attention") == "bidirectional":
        look_both_ways(encoder, reference.name)
    return replace(
        whole,
        name=reference.name,
        revision=reference.revision,
        trained=reference.trained,
        encoder=encoder,
    )


def _as_trained(whole: Backbone, folder: Path, name: str) -> Backbone:
    """Return the backbone with the tokenizer of the adapter's folder, if it has one, and a note if
    the adapter was trained on a class that transformers lacks.
    """
    notes: list[str] = []
    if has_vocabulary(folder):
        read = read_tokenizer(folder)
        check_vocabulary(name, read.tokenizer, whole.encoder.config)
        whole = replace(whole, tokenizer=read.tokenizer)
        notes.append("tokenised as the adapter's folder says")
        if read.note:
            notes.append(read.note)
    trained_on = class_of_adapter(folder)
    if trained_on:
        kind = type(whole.encoder).__name__
        notes.append(
            f"the adapter was trained on {trained_on}, which transformers lacks, and is put on "
            f"{kind}: --set attention=bidirectional if that class attends to both sides"
        )
    return replace(whole, note="; ".join(notes))


def _rounded(encoder: Any, dtype: str) -> Any:
    """Return an encoder in float32 with the values that its weights have in a number format."""
    if dtype == "bf16":
        _narrow(encoder)
        encoder.float()
    elif dtype == "4bit":
        return in_four_bits(encoder).dequantize()
    return encoder


def _narrow(encoder: Any) -> None:
    """Put the weights into bfloat16; buffers, such as the frequencies of positions, stay exact."""
    for parameter in encoder.parameters():
        parameter.data = parameter.data.bfloat16()
