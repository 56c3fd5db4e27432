"""A stand-in for a GPU: tensors that claim to be on cuda:0 and are computed on the CPU.

An operation that a real card refuses is refused here, too: one that mixes the card's tensors with
the CPU's, and numpy on a tensor of the card. Each operation that makes the host wait for a card, or
hands it a tensor while the host waits, is counted by its line of code. Results are the CPU's:
speed, memory and rounding of a card are not imitated.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._decomp.decompositions import lstm_data_impl, lstm_impl
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CARD, CPU = torch.device("cuda", 0), torch.device("cpu")
WAITS: Counter[str] = Counter()  # place in the code -> how often the host waited there for the card
UPLOADS: Counter[str] = (
    Counter()
)  # and how often it copied a tensor to the card without going on meanwhile

ASKS = (  # operations whose result, or the shape of it, the host has to know
    "_local_scalar_dense nonzero masked_select _unique2 unique_dim unique_consecutive equal "
    "bincount repeat_interleave"
)
MAY_MIX = (  # they take tensors of both devices on a real card, too
    "copy_ _to_copy index index_put_ index_put _index_put_impl_ _unsafe_index _pack_padded_sequence"
)
CODE = (
    "/transformers/",
    "/methods/",
    "/bench/",
    "/torch/optim/",
    "/torch/nn/utils/",
    "/torch/amp/",
)


def build_guard(folder: Path) -> None:
    """Compile and load guard.cpp. Raises RuntimeError or OSError if there is no compiler."""
    from torch.utils.cpp_extension import load

    source = Path(__file__).with_name("guard.cpp")
    load("standin_guard", [str(source)], build_directory=str(folder), is_python_module=False)


def place() -> str:
    """Return the innermost line of methods, this package or a library that asked for the
    operation.
    """
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if any(part in file for part in CODE):
            return f"{'/'.join(file.split('/')[-2:])}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back  # type: ignore[assignment]
    return "elsewhere"


class OnCard(Tensor):
    """A tensor of the card; ``data_on_cpu`` holds its numbers."""

    data_on_cpu: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, data: Tensor) -> OnCard:
        made = Tensor._make_wrapper_subclass(
            cls,
            data.size(),
            strides=data.stride(),
            storage_offset=data.storage_offset(),
            dtype=data.dtype,
            device=CARD,
        )
        made.data_on_cpu = data
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})

    def tolist(self) -> Any:
        WAITS[f"tolist {place()}"] += 1
        return self.data_on_cpu.tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    __array__ = numpy

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.data_on_cpu.detach().__reduce_ex__(protocol)


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute an operation of the card on the CPU: check it, count it, put its results on the
    card.
    """
    torch._C._set_only_lift_cpu_tensors(True)
    name = func._schema.name.removeprefix("aten::")
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    ours = [tensor for tensor in tensors if isinstance(tensor, OnCard)]
    others = [tensor for tensor in tensors if not isinstance(tensor, OnCard)]
    to = None if kwargs.get("device") is None else torch.device(kwargs["device"])
    if not ours and (to is None or to.type != "cuda"):
        # page-locked memory needs a card
        plain = {key: value for key, value in kwargs.items() if key != "pin_memory"}
        return func(*args, **plain)
    if name == "_fused_sdp_choice":
        return 0  # attention as plain products
    check(name, args, ours, others)
    count(name, args, kwargs, others, to)
    if name == "copy_" and not isinstance(args[0], OnCard):
        return func(args[0], args[1].data_on_cpu, *args[2:])
    result = func(*tree_map(on_cpu, args), **tree_map(on_cpu, kwargs) | moved_options(kwargs))
    if (written := written_arguments(func, args, kwargs)) and func._schema.returns:
        return written[0] if len(written) == 1 else tuple(written)
    if to == CPU:
        return result
    if name == "_pack_padded_sequence":
        return on_card(result[0]), result[1]  # its batch sizes stay on the CPU
    return tree_map(on_card, result)


def on_cpu(value: Any) -> Any:
    return value.data_on_cpu if isinstance(value, OnCard) else value


def on_card(value: Any) -> Any:
    return OnCard(value) if isinstance(value, Tensor) and not isinstance(value, OnCard) else value


def moved_options(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the options that differ if an operation is computed on the CPU."""
    instead = {"device": CPU, "pin_memory": False, "generator": None}
    return {key: value for key, value in instead.items() if kwargs.get(key) is not None}


def written_arguments(func: Any, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """Return the arguments that an operation writes and gives back as the same tensors."""
    returned = [result.alias_info for result in func._schema.returns]
    if not all(alias is not None and alias.is_write for alias in returned):
        return []
    given = {
        frozenset(argument.alias_info.before_set): kwargs.get(argument.name)
        if argument.kwarg_only or i >= len(args)
        else args[i]
        for i, argument in enumerate(func._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    }
    return [given[frozenset(alias.before_set)] for alias in returned]


def check(name: str, args: Any, ours: list[Tensor], others: list[Tensor]) -> None:
    """Raise RuntimeError if a card would: for a CPU tensor of several numbers, or as index."""
    mixed = ours and [
        tensor
        for tensor in others
        if tensor.ndim or name in ("cat", "stack", "gather", "embedding")
    ]
    indexed = ours and name in ("index", "_unsafe_index") and not isinstance(args[0], OnCard)
    if indexed or (mixed and name not in MAY_MIX.split()):
        raise RuntimeError(
            "Expected all tensors to be on the same device, "
            f"but found cuda:0 and cpu in {name} at {place()}"
        )


def count(name: str, args: Any, kwargs: Any, others: list[Tensor], to: torch.device | None) -> None:
    by_mask = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
        tensor is not None and tensor.dtype in (torch.bool, torch.uint8) for tensor in args[1]
    )
    down = to == CPU or (name == "copy_" and not isinstance(args[0], OnCard))
    if name in ASKS.split() or by_mask or down:
        WAITS[f"{name} {place()}"] += 1
    up = (name == "_to_copy" and not down) or name in ("index", "copy_")
    if up and any(tensor.ndim for tensor in others) and not kwargs.get("non_blocking"):
        UPLOADS[f"{name} {place()}"] += 1


class Everywhere(TorchDispatchMode):
    """A mode for operations that take no tensor and make one on the card."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


class Event:
    """A mark in the card's queue, with the host's time: here the queue is always empty."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self, *_: Any) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        return 1000 * (end.at - self.at)

    def synchronize(self) -> None:
        pass


def lstm(first: Tensor, second: Any, *rest: Any) -> Any:
    """An LSTM in plain operations: the kernel for a card is in no build for CPUs.

    ``second`` are batch sizes, or the first states.
    """
    return (lstm_data_impl if isinstance(second, Tensor) else lstm_impl)(first, second, *rest)


@contextmanager
def present() -> Iterator[None]:
    """While open, torch has this card.

    For a process of its own: it changes how torch is set, and loads the guard for good.
    """
    torch._C._set_only_lift_cpu_tensors(True)
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    about = SimpleNamespace(
        major=9,
        minor=0,
        uuid="0",
        name="stand-in card",
        total_memory=80 << 30,
        multi_processor_count=132,
    )
    answers = {
        "_lazy_init": None,
        "init": None,
        "is_available": True,
        "is_initialized": True,
        "current_device": 0,
        "current_stream": None,
        "device_count": 1,
        "set_device": None,
        "synchronize": None,
        "empty_cache": None,
        "is_bf16_supported": True,
        "get_device_name": about.name,
        "get_device_properties": about,
        "get_device_capability": (9, 0),
        "manual_seed": None,
        "manual_seed_all": None,
        "_is_in_bad_fork": False,
        "reset_peak_memory_stats": None,
        "max_memory_allocated": 1,
        "memory_allocated": 1,
        "mem_get_info": (80 << 30, 80 << 30),
    }
    always = {name: mock.Mock(return_value=value) for name, value in answers.items()}
    with (
        mock.patch.multiple(
            torch.cuda,
            **always,
            Event=Event,
            get_rng_state=lambda *_: torch.get_rng_state(),
            set_rng_state=lambda state, *_: torch.set_rng_state(state),
        ),
        mock.patch("torch.cuda.amp.common.amp_definitely_not_available", lambda: False),
        mock.patch("torch.inference_mode", lambda *_: torch.no_grad()),
        mock.patch.object(Tensor, "pin_memory", lambda self, *_: self),
        mock.patch("torch._VF.lstm", lstm),
        Everywhere(),
    ):
        yield
