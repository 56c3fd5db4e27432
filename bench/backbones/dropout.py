"""Set the dropout of an encoder, and measure how much of it takes place.

Families give it many names (``hidden_dropout_prob``, ``resid_pdrop``, ``dropout_rate``), and a part
of an encoder may not read the name that the config has. So a value that is set is measured: one
short pass in training mode shows every dropout that takes place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench.base.errors import NotAModel, one_line

if TYPE_CHECKING:
    from torch import nn

LEAVE_OUT = "leave --set dropout= out, or take a backbone of another family"
OF_OTHER_PARTS = (
    "classif",
    "summary",
    "pooler",
    "head",
    "qa_",
    "cls_",
    "layerdrop",
    "layer_drop",
    "drop_path",
    "token_dropout",
    "adapter",
    "router",
)
"""Parts of key names that set no dropout inside the encoder, but in a head, or of whole layers and
tokens.
"""


def is_dropout(key: object, value: object) -> bool:
    """Tell whether an entry of a config is a probability of dropout inside the encoder."""
    if not isinstance(key, str) or "drop" not in key or any(part in key for part in OF_OTHER_PARTS):
        return False
    return isinstance(value, int | float) and not isinstance(value, bool)


def own_dropout(config: Mapping[str, Any]) -> float | None:
    """Return the largest dropout that a config sets inside the encoder; None if it sets none.

    Parts of a config that are mappings, such as MPT's ``attn_config``, count.
    """
    found: list[float] = []
    for key, value in config.items():
        if is_dropout(key, value):
            found.append(float(value))
        elif isinstance(value, Mapping):
            inner = own_dropout(value)
            if inner is not None:
                found.append(inner)
    return max(found, default=None)


def set_dropout(config: Any, p: float) -> None:
    """Set every dropout of a transformers config, and of the configs inside it, to ``p``.

    Raises NotAModel if a config does not take the value: MPT's takes only whole numbers.
    """
    for key, value in list(vars(config).items()):
        if is_dropout(key, value):
            try:
                setattr(config, key, p)
            except Exception as error:  # each version of transformers has another kind
                raise NotAModel(
                    f"{config.model_type} takes no dropout={p}: {one_line(error)}", LEAVE_OUT
                ) from None
        elif isinstance(value, dict):
            for inner_key, inner_value in value.items():
                if is_dropout(inner_key, inner_value):
                    value[inner_key] = p
        elif hasattr(value, "model_type"):
            set_dropout(value, p)


def dropout_in_use(encoder: nn.Module) -> dict[str, set[float]]:
    """Return the probabilities of a training pass's dropout, by the function that drops numbers.

    The pass reads four tokens; the CPU's random state is restored. The result is empty for an
    encoder without dropout.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    found: dict[str, set[float]] = {}

    class Recorder(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            name = getattr(function, "__name__", "")
            if name == "scaled_dot_product_attention":
                p = kwargs.get("dropout_p", args[4] if len(args) > 4 else 0.0)
                found.setdefault("attention", set()).add(float(p))
            elif "dropout" in name:
                p = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
                if kwargs.get("training", args[2] if len(args) > 2 else True):
                    found.setdefault("dropout", set()).add(float(p))
            return function(*args, **kwargs)

    was_training = encoder.training
    encoder.train()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), Recorder():
            encoder(**some_tokens(encoder))
    finally:
        encoder.train(was_training)
    return found


def some_tokens(encoder: Any) -> dict[str, Any]:
    """Return one row of four tokens from the middle of the vocabulary, none of them padding."""
    import torch

    words = encoder.get_input_embeddings().weight
    middle = len(words) // 2
    ids = torch.arange(middle, middle + 4, device=words.device).unsqueeze(0)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def check_dropout_arrived(name: str, encoder: nn.Module, p: float) -> None:
    """Raise NotAModel unless every dropout of the encoder is ``p``."""
    try:
        used = dropout_in_use(encoder)
    except Exception as error:  # a family may need more than ids and a mask
        raise NotAModel(
            f"{name}: whether dropout={p} arrives cannot be measured: {one_line(error)}", LEAVE_OUT
        ) from None
    values = set[float]().union(*used.values())
    if p > 0 and not any(values):
        raise NotAModel(f"{name} has no dropout: dropout={p} would change nothing", LEAVE_OUT)
    if p > 0 and used.get("attention") == {0.0}:
        values.discard(0.0)  # of a fused attention in a family whose attention has no dropout
    others = sorted(value for value in values if value != p)
    if others:
        shown = ", ".join(f"{value:g}" for value in others)
        raise NotAModel(
            f"dropout={p} does not arrive in all of {name}: a part of it has {shown}", LEAVE_OUT
        )
