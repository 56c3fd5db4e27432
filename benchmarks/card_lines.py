"""The lines of a card's measurement, in order of importance, and their five tables."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.base.files import write_whole

TABLES = {
    "right": "Right",
    "speed": "Speed",
    "profile": "Profile",
    "memory": "Memory",
    "cost": "Cost",
}
RESULTS = "lines.jsonl"
PASSED, FAILED, MISSED, MEASURED = "passed", "failed", "missed", "measured"


@dataclass(frozen=True)
class Line:
    """One measurement: a line of a table."""

    name: str
    """TABLE.NAME"""

    what: str
    seconds: float
    """Expected on an H100: arithmetic, not measured."""

    @property
    def table(self) -> str:
        """The table that the line belongs to."""
        return self.name.partition(".")[0]


LINES = (
    Line("right.dropout", "dropout of fused attention at 0.1", 5),
    Line("speed.64", "64 rows of 32 tokens", 40),
    Line("right.steps", "five steps on BERT-base's shape", 20),
    Line("speed.512", "512 rows of 32 tokens", 45),
    Line("right.graph", "five steps with step=graph beside the plain step", 8),
    Line("speed.64-graph", "64 rows, step=graph beside the plain step", 6),
    Line("profile.512", "512 rows", 8),
    Line("profile.64", "64 rows", 6),
    Line("cost.recipe", "SimCSE's recipe on BERT-base's shape", 25),
    Line("memory.bert-base-64", "BERT-base, 64 rows", 4),
    Line("memory.bert-base-512", "BERT-base, 512 rows", 5),
    Line("right.resume", "an interrupted training", 15),
    Line("right.demo", "bench demo on CPU and card", 40),
    Line("memory.roberta-large-512", "RoBERTa-large, 512 rows", 10),
    Line("speed.encoding", "encoding in float32", 20),
    Line("speed.512-graph", "512 rows, step=graph beside the plain step", 12),
    Line("right.unpadded", "five steps with unpadded=true beside the plain step", 8),
    Line("speed.512-unpadded", "512 rows of up to 32 tokens, unpadded=true", 12),
    Line("right.compiled", "five steps with compile=true beside the plain step", 40),
    Line("speed.64-compiled", "64 rows, compile=true", 60),
    Line("speed.512-compiled", "512 rows, compile=true", 60),
)
"""Every line, the most important first; those up to ``right.demo`` take some 225 s."""


def measure_line(place: Any, name: str) -> Any:
    """Make one measurement; returns its ``Found``. Raises whatever it raises."""
    import card_cost
    import card_memory
    import card_profile
    import card_right
    import card_speed
    import card_switches

    if name == "right.dropout":
        return card_right.attention_dropout(place)
    if name == "right.steps":
        return card_right.five_steps(place)
    if name == "right.resume":
        return card_right.resumed(place)
    if name == "right.demo":
        return card_right.demo_on_both(place)
    if name == "speed.encoding":
        return card_speed.encoding(place)
    if name == "cost.recipe":
        return card_cost.paper_recipe(place)
    if name in ("right.graph", "right.compiled", "right.unpadded"):
        return card_switches.compared_steps(place, name.removeprefix("right."))
    if name.startswith("speed.") and name.endswith(("-graph", "-unpadded")):
        rows, _, switch = name.removeprefix("speed.").partition("-")
        return card_switches.step_time(place, int(rows), switch)
    table, _, rest = name.partition(".")
    if table == "speed":
        rows, _, how = rest.partition("-")
        return card_speed.speed(place, int(rows), compiled=how == "compiled")
    if table == "profile":
        return card_profile.profile(place, int(rest))
    if table == "memory":
        model, _, rows = rest.rpartition("-")
        return card_memory.memory(place, model, int(rows))
    raise KeyError(name)


def result_of(line: Line, measure: Callable[[], Any]) -> dict[str, Any]:
    """Measure a line and return what is kept of it; an error becomes a result with its message."""
    try:
        found = measure()
    except Exception as error:
        import traceback

        traceback.print_exc()
        text = " ".join(f"{type(error).__name__}: {error}".split())[:400]
        return {"status": FAILED, "value": text, "asked": "", "detail": {}, "lost": is_lost(error)}
    status = MEASURED
    if found.good is True:
        status = PASSED
    if found.good is False:
        status = FAILED if line.table == "right" else MISSED
    kept = asdict(found)
    del kept["good"]
    return {"status": status, **kept}


def is_lost(error: BaseException) -> bool:
    """Say if the card is of no more use to this process, as after a failed kernel."""
    if "out of memory" in str(error):
        return False
    signs = ("CUDA error", "AcceleratorError", "cuDNN error", "CUBLAS_STATUS")
    return any(sign in f"{type(error).__name__}: {error}" for sign in signs)


class Results:
    """The results in a folder: a line of JSON for each measurement, written as it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: dict[str, dict[str, Any]] = {}
        """Line -> its last result."""
        file = folder / RESULTS
        if not file.is_file():
            return
        for text in file.read_text(encoding="utf-8").splitlines():
            try:
                result = json.loads(text)
                self.lines[result["line"]] = result
            except (ValueError, KeyError, TypeError):  # the process was killed while it wrote
                continue

    def add(self, name: str, result: dict[str, Any]) -> None:
        """Append a result and write the tables again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        result = {"line": name, **result}
        file = self.folder / RESULTS
        torn = file.is_file() and not file.read_bytes().endswith(b"\n") and file.stat().st_size
        with file.open("a", encoding="utf-8") as out:
            out.write(("\n" if torn else "") + json.dumps(result, default=float) + "\n")
            out.flush()
            os.fsync(out.fileno())
        self.lines[name] = result
        write_whole(self.folder / "tables.md", tables(self.lines).encode())

    def remaining(self, chosen: Sequence[Line]) -> list[Line]:
        """Return the lines without a result, in their order, then those that failed."""
        missing = [line for line in chosen if line.name not in self.lines]
        again = []
        for line in chosen:
            if self.lines.get(line.name, {}).get("status") == FAILED:
                again.append(line)
        return missing + again


def tables(results: dict[str, dict[str, Any]]) -> str:
    """Return the results as five tables, for benchmarks/README.md."""
    machines = dict.fromkeys(str(result.get("machine", "")) for result in results.values())
    text = [*machines, ""]
    for table, title in TABLES.items():
        rows = [line for line in LINES if line.table == table and line.name in results]
        if not rows:
            continue
        text += [f"### {title}", "", "| | found | asked | |", "|---|---|---|---|"]
        for line in rows:
            result = results[line.name]
            cells = [line.what, result["value"], result["asked"], result["status"]]
            text.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        text.append("")
    missing = [line.name for line in LINES if line.name not in results]
    if missing:
        text.append(f"Not measured yet: {', '.join(missing)}")
    return "\n".join(text) + "\n"
