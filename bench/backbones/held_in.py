"""Encoders with weights in bfloat16 that are trained as they are and scored in float32.

In bfloat16 a sentence's vector moves by 1e-2 with the other sentences of its batch, because the
shape of a product decides in which order it is summed. So scoring widens the weights of each layer
to float32 while that layer computes: the whole encoder is never there twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

HELD_IN = "held_in"
"""The attribute of an encoder that names the format of its weights: "bf16" or "4bit"."""
WIDENED = "is_widened"
"""The attribute that says if they are float32 while they compute."""


def hold_in(encoder: Any, dtype: str) -> None:
    """Note the number format of the weights, and let the encoder take and return float32.

    A method's own layers are float32: without this, its head could not read the states.
    """
    setattr(encoder, HELD_IN, dtype)
    if dtype == "bf16":
        encoder.register_forward_pre_hook(_narrow_inputs, with_kwargs=True)
        encoder.register_forward_hook(_widen_outputs)


def computes_in(encoder: Any) -> torch.dtype:
    """Return the type of the states that the encoder's layers take at this moment."""
    if getattr(encoder, WIDENED, False):
        return torch.float32
    dtype: torch.dtype = encoder.get_input_embeddings().weight.dtype
    return dtype


def _narrow_inputs(encoder: Any, inputs: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Convert embedded inputs to the type of the weights."""
    words = named.get("inputs_embeds")
    if isinstance(words, Tensor) and not getattr(encoder, WIDENED, False):
        named = named | {"inputs_embeds": words.to(torch.bfloat16)}
    return inputs, named


def _widen_outputs(encoder: Any, inputs: Any, outputs: Any) -> Any:
    """Convert the states that an encoder returns to float32."""
    for key in ("last_hidden_state", "pooler_output"):
        value = getattr(outputs, key, None)
        if isinstance(value, Tensor):
            outputs[key] = value.float()
    states = getattr(outputs, "hidden_states", None)
    if states is not None:
        outputs["hidden_states"] = tuple(state.float() for state in states)
    return outputs


@contextmanager
def widened_weights(encoder: nn.Module) -> Iterator[None]:
    """Compute with float32 copies of weights that are held in bfloat16, while open.

    A layer's copy is there only while the layer computes. Other encoders are left alone.
    """
    if getattr(encoder, HELD_IN, None) != "bf16":
        yield
        return
    handles: list[Any] = []
    setattr(encoder, WIDENED, True)
    for module in encoder.modules():
        own = [p for p in module.parameters(recurse=False) if p.dtype == torch.bfloat16]
        if own:
            handles.append(module.register_forward_pre_hook(partial(_widen, own)))
            handles.append(module.register_forward_hook(_restore, always_call=True))
    try:
        yield
    finally:
        setattr(encoder, WIDENED, False)
        for handle in handles:
            handle.remove()


def _widen(parameters: list[nn.Parameter], module: nn.Module, inputs: Any) -> None:
    """Make the weights of a layer float32, until :func:`_restore`."""
    with torch.inference_mode(False), torch.no_grad():
        held = [(parameter, parameter.data) for parameter in parameters]
        vars(module)["held_weights"] = held
        for parameter, narrow in held:
            parameter.data = narrow.float()


def _restore(module: nn.Module, inputs: Any, outputs: Any) -> None:
    """Put back the weights that a layer holds."""
    with torch.inference_mode(False), torch.no_grad():
        for parameter, narrow in vars(module).pop("held_weights", ()):
            parameter.data = narrow
