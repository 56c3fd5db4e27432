"""The place where runs are done: the value of ``--on``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import msgspec

from bench.base.errors import BenchError, UnknownName
from bench.base.typed import Count, convert_typed

ON_EXAMPLE = (
    "--on torchrun:4, --on local:8, --on slurm:partition=gpu,gpus=1,time=4:00:00, or --on commands"
)
RESOURCES = ("gpus", "cpus", "memory", "parallel", "retries")
KEYS = {
    "here": (),
    "torchrun": ("gpus",),
    "local": ("parallel", "cpus", "retries"),
    "slurm": RESOURCES,
    "commands": RESOURCES,
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """The place where runs are done: the value of ``--on``, in parts."""

    name: str = "here"
    gpus: Count | None = None  # of each run; of torchrun: processes
    cpus: Count | None = None
    memory: str | None = None  # as typed: "16G"
    parallel: Count | None = None  # runs at once
    # attempts to run again what a killed worker left
    retries: Annotated[int, msgspec.Meta(ge=0)] = 3
    options: tuple[tuple[str, str], ...] = ()  # of sbatch

    @property
    def ranks(self) -> int:
        """Processes that train a run together; of torchrun it is only known once it is settled."""
        return self.gpus or 1

    @property
    def elsewhere(self) -> bool:
        """Are the runs done by workers, on other machines or later?"""
        return self.name in ("slurm", "commands")


def parse_target(text: str) -> Target:
    """Return ``"slurm:partition=gpu,gpus=1"`` as a :class:`Target`; a comma without a KEY= after it
    belongs to the value before it ("nodelist=a,b"). Raises BenchError for anything else.
    """
    name, _, rest = text.partition(":")
    if name not in KEYS:
        raise UnknownName("target", name, KEYS, "of --on", ON_EXAMPLE)
    first = rest.partition(",")[0]
    if name == "torchrun" and rest.isdigit():
        rest = f"gpus={rest}"
    if name == "local" and first.isdigit():
        rest = f"parallel={rest}"
    kinds = get_type_hints(Target, include_extras=True)
    values: dict[str, Any] = {}
    options = []
    parts = re.split(r",(?=[\w-]+=)", rest) if rest else []
    for part in parts:
        key, equals, value = part.partition("=")
        if key in KEYS[name]:
            try:
                values[key] = convert_typed(value, kinds[key], strict=False)
            except ValueError as error:
                raise BenchError(f"--on {text}: {key}={value}: {error}", ON_EXAMPLE) from None
        elif name == "slurm" and equals and f"{key}s" not in KEYS[name]:
            options.append((key.lstrip("-"), value))
        else:
            raise BenchError(f"--on {text}: {name} has no option {key}", ON_EXAMPLE)
    return Target(name=name, options=tuple(options), **values)
