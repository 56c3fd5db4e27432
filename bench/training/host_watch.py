"""The parts of a loss outside of tensors, which a graph would not repeat."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from bench.method.batch import Batch
from bench.method.features import Features
from bench.method.torch_method import TorchMethod

FOLLOWED = ("rows", "step", "tokens", "whole")
"""Fields of a batch that are no tensors, and that differ from step to step."""


class WatchedBatch(Batch):
    """A batch that remembers which of its numbers are read."""

    seen: set[str]

    @classmethod
    def watching(cls, batch: Batch) -> WatchedBatch:
        """Return the batch, watched."""
        watched = cls(batch.columns, batch.step)
        watched.seen = set()
        return watched

    def with_columns(self, columns: tuple[Features, ...]) -> Batch:
        other = WatchedBatch(columns, object.__getattribute__(self, "step"))
        other.seen = self.seen
        return other

    def __getattribute__(self, name: str) -> Any:
        if name in FOLLOWED:
            self.seen.add(name)
        return super().__getattribute__(name)

    def reason(self) -> str | None:
        """Name a number that was read, or return None."""
        if not self.seen:
            return None
        return f"the loss reads batch.{min(self.seen)}, which differs from step to step"


class HostWatch:
    """The state of a method and of random generators that are no tensors of its device."""

    def __init__(self, method: TorchMethod, device: torch.device) -> None:
        self.method = method
        self.device = device
        self.attributes = attributes_of(method)
        self.draws = self._draws()

    def change(self) -> str | None:
        """Name something that changed since this was made, or return None."""
        if self._draws() != self.draws:
            return "the loss draws random numbers on the CPU"
        now = attributes_of(self.method)
        for name in now.keys() | self.attributes.keys():
            if now.get(name) != self.attributes.get(name):
                return f"the loss changes {name}, which is no tensor"
        return None

    def _draws(self) -> tuple[Any, ...]:
        name, keys, *rest = np.random.get_state()
        drawn: tuple[Any, ...] = (name, np.asarray(keys).tobytes(), *rest, random.getstate())
        if self.device.type != "cpu":
            drawn += (torch.get_rng_state().numpy().tobytes(),)
        return drawn


def attributes_of(method: TorchMethod) -> dict[str, Any]:
    """Return something for every attribute of the modules that differs if it was changed.

    A number or text is there as it is; a container by its identity and length, also of the
    dictionaries of parameters, buffers and submodules; anything else by its identity.
    """
    found: dict[str, Any] = {}
    for prefix, module in method.named_modules():
        for name, value in vars(module).items():
            path = f"{prefix}.{name}".lstrip(".")
            if name in ("_parameters", "_buffers", "_modules"):
                for key, one in value.items():
                    found[f"{prefix}.{key}".lstrip(".")] = id(one)
            elif isinstance(value, int | float | str | bool):
                found[path] = value
            elif isinstance(value, list | dict | set):
                found[path] = (id(value), len(value))
            else:
                found[path] = id(value)
    return found
