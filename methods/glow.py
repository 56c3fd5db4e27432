"""Glow on vectors: an invertible network that makes them standard normal. It knows no method.

n vectors of C channels; H channels in all. Kingma and Dhariwal 2018, as in BERT-flow for a vector
in the place of an image: each step is

    actnorm          y = (x + b) exp(3 a), one b and a a channel; started on data so that y has
                     mean 0 and variance 1
    permutation      of the channels, fixed
    coupling         y1 = x1;  y2 = x2 + net(x1), additive, so without a change of volume

and after each level but the last the second half of the channels is split off unchanged. Only
actnorm changes the volume.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

SCALE = 3.0  # the parameter is a third of the log scale: larger steps at the same learning rate
FLOOR = 1e-6  # added to a channel's standard deviation at the start


class ActNorm(nn.Module):
    """A shift and a scale for each channel, set from data so that outputs start with mean 0 and
    variance 1.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(channels))
        self.log_scale = nn.Parameter(torch.zeros(channels))

    def forward(self, x_nC: Tensor, start: bool = False) -> Tensor:
        """Scale and shift rows; with ``start``, first set both so that these rows have mean 0 and
        variance 1.
        """
        if start:
            with torch.no_grad():
                self.shift.copy_(-x_nC.mean(0))
                deviation_C = (x_nC + self.shift).square().mean(0).sqrt() + FLOOR
                self.log_scale.copy_(-deviation_C.log() / SCALE)
        return (x_nC + self.shift) * (SCALE * self.log_scale).exp()

    def log_determinant(self) -> Tensor:
        return SCALE * self.log_scale.sum()


class CouplingNet(nn.Module):
    """The network of a coupling: two hidden layers with actnorm and ReLU, and a last one that
    starts at 0.

    So every coupling starts as the identity.
    """

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)
        self.norms = nn.ModuleList([ActNorm(width), ActNorm(width)])
        self.last = nn.Linear(width, outputs)
        self.log_scale = nn.Parameter(torch.zeros(outputs))
        for layer in (self.first, self.second):
            nn.init.normal_(layer.weight, std=0.05)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x_nC: Tensor, start: bool = False) -> Tensor:
        for layer, norm in zip((self.first, self.second), self.norms, strict=True):
            x_nC = norm(layer(x_nC), start).relu()
        return self.last(x_nC) * (SCALE * self.log_scale).exp()


class Step(nn.Module):
    """One step of a level: actnorm, permutation, coupling."""

    order: Tensor

    def __init__(self, channels: int, width: int, order: Tensor) -> None:
        super().__init__()
        self.cut = channels // 2
        self.norm = ActNorm(channels)
        self.register_buffer("order", order)
        self.net = CouplingNet(self.cut, width, channels - self.cut)

    def forward(self, x_nC: Tensor, start: bool = False) -> Tensor:
        x_nC = self.norm(x_nC, start)[:, self.order]
        kept, moved = x_nC[:, : self.cut], x_nC[:, self.cut :]
        return torch.cat([kept, moved + self.net(kept, start)], dim=1)


class Glow(nn.Module):
    """The whole flow: ``levels`` of ``depth`` steps each.

    ``permutation``: "random", drawn when it is made, or "reversed" channels. Raises ValueError if
    the channels cannot be halved ``levels - 1`` times.
    """

    def __init__(
        self,
        channels: int,
        levels: int = 3,
        depth: int = 3,
        width: int = 32,
        permutation: str = "random",
    ) -> None:
        super().__init__()
        if channels % 2 ** (levels - 1) or channels < 2**levels:
            raise ValueError(
                f"{channels} channels cannot be halved {levels - 1} times and still be coupled"
            )
        self.levels = nn.ModuleList()
        for level in range(levels):
            size = channels // 2**level
            steps = [Step(size, width, fixed_order(size, permutation)) for _ in range(depth)]
            self.levels.append(nn.ModuleList(steps))

    def forward(self, x_nH: Tensor, start: bool = False) -> Tensor:
        """Return z, (n, H): the parts that were split off, level by level, then the rest.

        ``start`` sets every actnorm from these rows.
        """
        parts = []
        for number, steps in enumerate(self.levels, 1):
            for step in steps:  # type: ignore[attr-defined]
                x_nH = step(x_nH, start)
            if number < len(self.levels):
                x_nH, off = x_nH.chunk(2, dim=1)
                parts.append(off)
        return torch.cat([*parts, x_nH], dim=1)

    def log_determinant(self) -> Tensor:
        """Return log |det dz/dx|, one number, because it is the same for every x."""
        return torch.stack(
            [
                step.norm.log_determinant()
                for steps in self.levels
                for step in steps  # type: ignore[attr-defined]
            ]
        ).sum()


def fixed_order(channels: int, kind: str) -> Tensor:
    """Return the channel that goes to each place, (channels,).

    Raises ValueError for an unknown kind.
    """
    if kind == "random":
        return torch.randperm(channels)
    if kind == "reversed":
        return torch.arange(channels - 1, -1, -1)
    raise ValueError(f"permutation '{kind}' is unknown: random or reversed")


def bits_per_channel(z_nH: Tensor, log_determinant: Tensor) -> Tensor:
    """Return -log2 of x's density over H, mean over the rows.

    It is (H/2 log 2 pi + |z|^2 / 2 - log |det|) / (H log 2).
    """
    H = z_nH.shape[1]
    log_density = -0.5 * (z_nH.square().sum(1) + H * math.log(2 * math.pi)) + log_determinant
    return -log_density.mean() / (H * math.log(2))


class GlowLayer(nn.Module):
    """The flow behind a pooler, in an export. License: Apache-2.0.

    This file travels with the export and needs no other.
    """

    def __init__(self, channels: int, levels: int, depth: int, width: int) -> None:
        super().__init__()
        self.settings = {"channels": channels, "levels": levels, "depth": depth, "width": width}
        self.glow = Glow(channels, levels, depth, width)  # the permutation is part of the tensors

    @classmethod
    def load(cls, folder: str) -> GlowLayer:
        module = cls(**json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")))
        module.load_state_dict(load_file(Path(folder) / "model.safetensors"))
        return module

    def save(self, folder: str, **_: Any) -> None:
        (Path(folder) / "config.json").write_text(json.dumps(self.settings), encoding="utf-8")
        save_file(self.state_dict(), Path(folder) / "model.safetensors")
        # the library puts this file next to the tensors, and looks for it in the folder above
        shutil.copyfile(__file__, Path(folder).parent / Path(__file__).name)

    def get_embedding_dimension(self) -> int:
        return self.settings["channels"]

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        features["sentence_embedding"] = self.glow(features["sentence_embedding"])
        return features
