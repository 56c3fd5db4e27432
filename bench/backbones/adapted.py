"""Backbones with adapters on another backbone: a run's, or those in a folder that peft saved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench.backbones.adapter_folder import find_adapter
from bench.backbones.adapter_tensors import merge_folder, merge_run
from bench.backbones.bidirectional import look_both_ways
from bench.backbones.four_bit import round_to_four_bits

if TYPE_CHECKING:
    from bench.backbones.model import Backbone
    from bench.backbones.reference import Reference


def put_on_adapters(whole: Backbone, reference: Reference, dtype: str, *, merge: bool) -> Backbone:
    """Make the backbone of ``reference`` from its base, ``whole``, which is in float32.

    The base gets the values that the adapters were trained on: rounded, if the run held them in
    bfloat16 or in 4 bits. ``dtype``: the format of the result. ``merge``: False leaves the
    adapters out. Raises NotAModel if the adapters do not fit.
    """
    encoder = whole.encoder
    assert reference.trained is not None
    folder = reference.trained.parent
    values = reference.adapter_values()
    if find_adapter(folder) is not None:
        merge_folder(encoder, folder, reference.trained)
    else:
        if values.get("attention") == "bidirectional":
            look_both_ways(encoder, reference.name)
        if merge:
            _round(whole, str(values.get("base_dtype")))
            merge_run(encoder, reference.trained, values)
    if dtype == "bf16":
        _narrow(encoder)
    return replace(
        whole, name=reference.name, revision=reference.revision, trained=reference.trained
    )


def _round(whole: Backbone, dtype: str) -> None:
    """Give the weights the values that they have in a number format, in float32."""
    if dtype == "bf16":
        _narrow(whole.encoder)
        whole.encoder.float()
    elif dtype == "4bit":
        round_to_four_bits(whole.encoder)


def _narrow(encoder: Any) -> None:
    """Put the weights into bfloat16; buffers, such as the frequencies of positions, stay exact."""
    for parameter in encoder.parameters():
        parameter.data = parameter.data.bfloat16()
