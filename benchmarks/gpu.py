"""One command for a GPU: is what was written for one right, how much memory does it take, how fast is it, what does it cost?

    python benchmarks/gpu.py [--minutes 10] [--only NAMES] [--out DIR] [--device cuda] [--tiny]
    python benchmarks/gpu.py --device cpu --tiny          # a rehearsal of all of it, two minutes without a GPU

No card was at hand when this was written: it is proved on a stand-in for one alone (tests/benchmarks), which shows that every line runs
and mixes no devices. The speeds, the goals and the bounds of rounding wait for the first card.

Speeds are compared with sentence-transformers at its best (bf16, unpadded attention where flash_attn is installed, the best batch of a
sweep, distinct texts) and with its default (float32, padded). Ours is padded: unpadded attention by torch.nn.attention.varlen is left
out until a card shows that it pays.

It needs this checkout, torch, transformers and what they need; no installed package, no data, no network. Measurements are made in
the order of their importance, as many as fit into the minutes. After each of them DIR/results.json and DIR/results.md are written
whole. The same command again goes on with what is missing, then tries again what failed; it can be ended at any moment.

Measurements run in a second process, so that one that takes its process down, or the GPU's context, costs itself alone: the next
process goes on behind it. What these processes print is in DIR/log.txt. The exit code is 1 where something failed, 2 for a mistake
on the command line, 130 after Ctrl-C. What each line means is in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import ctypes
import difflib
import gc
import importlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [
    str(HERE.parent),
    str(HERE),
]  # this very checkout, also where another one is installed

from gpu_models import Place, entry_points  # noqa: E402

from bench.base.files import write_whole  # noqa: E402

GROUPS = {"right": "Right", "memory": "Memory", "fast": "Fast", "cost": "Several GPUs"}
FAILED, MISSED, PASSED, MEASURED, NEEDS = "failed", "missed", "passed", "measured", "needs a GPU"
FIRST = (
    "simcse",
    "promcse",
    "dcpcse",
    "conpvp",
    "promptbert",
    "focal-infonce",
)  # the methods of the five papers
START = 15.0  # seconds until a process has torch and a GPU
PATIENCE = {"cuda": 60.0, "cpu": 600.0}  # seconds that the shortest measurement may take


@dataclass(frozen=True)
class Item:
    """One measurement: a function of one of the gpu_ modules, and what it is given."""

    name: str  # GROUP.NAME
    what: str
    call: str  # MODULE.FUNCTION
    argument: str | None = None
    seconds: float = 10.0  # expected, on a GPU
    gpus: int = 1  # that it needs to mean anything; 0: also a CPU's answer stands
    alone: bool = False  # in a process of its own
    environment: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def group(self) -> str:
        return self.name.partition(".")[0]


def items() -> list[Item]:
    """Every measurement, the most important first."""
    found = [_method(name) for name in FIRST]
    found += [
        Item("right.embeddings", "vectors, CPU against GPU", "gpu_right.embeddings", seconds=10),
        Item(
            "right.resume",
            "resume, bit for bit",
            "gpu_right.resumed",
            seconds=30,
            alone=True,
            environment={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
        ),
        Item("right.chunk", "`--chunk`", "gpu_right.chunked", seconds=12),
        Item("right.auto-batch", "`--chunk auto`", "gpu_right.auto_batch", seconds=20, alone=True),
        Item("right.classifiers", "classifiers of `transfer`", "gpu_right.classifiers", seconds=25),
        Item("right.scores", "k-means and CxC of the GPU's vectors", "gpu_right.scored", seconds=8),
        *(
            _method(name) for name in entry_points() if name not in (*FIRST, "stored-prefix")
        ),  # the latter needs a checkpoint with a prefix
    ]
    found += [
        Item(
            f"memory.{model}-{batch}",
            f"{model}, batch {batch}",
            "gpu_speed.memory",
            f"{model}-{batch}",
            seconds=8 if model == "bert-base" else 15,
        )
        for batch in (64, 256, 512)
        for model in ("bert-base", "roberta-large")
    ]
    found += [Item("fast.peak", "matrix product, bf16", "gpu_speed.peak", seconds=4, gpus=0)]
    found += [
        Item(
            f"fast.{method}-{setting[:5].rstrip('er')}-{batch}",
            f"{method}, {setting}, batch {batch}",
            "gpu_speed.training",
            f"{method} {setting} {batch}",
            seconds=20 if method == "simcse" else 8,
            gpus=0,
        )
        for method in ("simcse", "promcse")
        for setting in ("unsupervised", "supervised")
        for batch in (512, 64)
    ]
    found += [
        Item(
            "fast.evaluation",
            "125 steps and their evaluation",
            "gpu_speed.evaluated",
            seconds=30,
            gpus=0,
        ),
        Item("fast.encoding", "encoding, float32", "gpu_speed.encoding", seconds=25, gpus=0),
        Item("fast.prefetch", "prefetching", "gpu_speed.switched", "prefetch", seconds=15, gpus=0),
        Item(
            "fast.grouping",
            "grouping by length",
            "gpu_speed.switched",
            "grouping",
            seconds=15,
            gpus=0,
        ),
        Item("fast.compile", "torch.compile", "gpu_speed.switched", "compile", seconds=90),
        *(
            Item(
                f"fast.row-{suite}",
                f"a row's {suite}",
                "gpu_speed.row",
                suite,
                seconds=seconds,
                gpus=0,
            )
            for suite, seconds in ROW.items()
        ),
        Item(
            "fast.paper-recipe",
            "SimCSE's recipe on BERT-base",
            "gpu_speed.paper_recipe",
            seconds=3000,
            gpus=0,
        ),
        Item(
            "cost.two-ranks",
            "two ranks, NCCL",
            "gpu_speed.two_ranks",
            seconds=40,
            gpus=2,
            alone=True,
        ),
    ]
    return found


ROW = {"transfer": 30, "clustering": 40, "cxc": 10, "sts": 3, "fewshot": 10, "geometry": 3}
ROW_GOAL = 60.0  # seconds of a whole row


def _method(name: str) -> Item:
    return Item(
        f"right.{name}",
        f"`{name}`",
        "gpu_right.method",
        name,
        seconds=25 if name in ("simcse", "promptbert") else 12,
    )


# the process that measures


def serve(device: str, tiny: bool, scratch: Path, answers: int) -> None:
    """Answers one line of JSON for each line of JSON: what an item found. Ends with its input, or with whoever started it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    place = Place(device, tiny, scratch)
    if (
        tiny and device == "cpu"
    ):  # several threads gain nothing on tiny shapes, and lose much on a busy machine
        import torch

        torch.set_num_threads(1)

    def answer(content: dict[str, Any]) -> None:
        os.write(
            answers, (json.dumps(content, default=lambda number: number.item()) + "\n").encode()
        )  # numpy's

    answer(facts(device))
    for line in sys.stdin:
        asked = json.loads(line)
        print(f"--- {asked['name']}", file=sys.stderr, flush=True)
        answer(measured(place, asked))


def facts(device: str) -> dict[str, Any]:
    """What the machine is."""
    from machine import describe_machine

    from bench.base.devices import device_name

    try:
        import torch

        count = torch.cuda.device_count() if device.startswith("cuda") else 0
        name = device_name(device)
        cuda = f", CUDA {torch.version.cuda}" if count else ""
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "device": name,
        "gpus": count,
        "machine": f"{describe_machine()}{cuda}, Python {sys.version.split()[0]}",
    }


def measured(place: Place, asked: dict[str, Any]) -> dict[str, Any]:
    module, _, function = asked["call"].rpartition(".")
    arguments = [] if asked["argument"] is None else [asked["argument"]]
    try:
        outcome = getattr(importlib.import_module(module), function)(place, *arguments)
        return asdict(outcome)
    except Exception as error:
        traceback.print_exc()
        found = {"error": " ".join(f"{type(error).__name__}: {error}".split())[:400]}
        if "torch" in sys.modules:
            from gpu_right import is_poison

            found["poisoned"] = is_poison(error)
            if not found["poisoned"]:
                with suppress(Exception):
                    free_memory()
        return found


def free_memory() -> None:
    """Give back what a measurement that failed has taken of the device."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


class Died(Exception):
    """The process that measured has ended; the text says how."""


class Slow(Exception):
    """It did not answer in time."""


class Worker:
    """The process that measures, from here: started when it is first asked, and ended by :meth:`end`."""

    def __init__(
        self, options: argparse.Namespace, scratch: Path, log: Path, environment: dict[str, str]
    ) -> None:
        self.environment = environment
        reading, writing = os.pipe()
        command = [
            sys.executable,
            str(HERE / "gpu.py"),
            "--device",
            options.device,
            "--serve",
            str(scratch),
            str(writing),
        ]
        paths = os.pathsep.join(
            [str(HERE.parent), str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        own = {
            "PYTHONPATH": paths,
            "BENCH_CACHE": str(scratch / "cache"),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        }
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                command + (["--tiny"] if options.tiny else []),
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                pass_fds=(writing,),
                start_new_session=True,
                env=os.environ | own | environment,
            )
        os.close(writing)
        self.answers, self.rest = reading, b""

    def ask(self, item: Item, limit: float, tick: Callable[[], None]) -> Any:
        assert self.process.stdin is not None
        content = {"name": item.name, "call": item.call, "argument": item.argument}
        try:
            self.process.stdin.write((json.dumps(content) + "\n").encode())
            self.process.stdin.flush()
        except OSError:
            raise Died(self.how()) from None
        return self.hear(limit, tick)

    def hear(self, limit: float, tick: Callable[[], None]) -> Any:
        """The next answer. Raises Died, Slow."""
        began = time.monotonic()
        while b"\n" not in self.rest:
            if time.monotonic() - began > limit:
                raise Slow
            tick()
            if select.select([self.answers], [], [], 0.2)[0]:
                more = os.read(self.answers, 1 << 16)
                if not more:
                    raise Died(self.how())
                self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def how(self) -> str:
        code = self.process.wait()
        return (
            f"its process was ended by {signal.Signals(-code).name}"
            if code < 0
            else f"its process ended with exit code {code}"
        )

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.answers)
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()


# what is kept


class Results:
    """The results in a folder. Every change is written at once, whole."""

    def __init__(self, folder: Path, tiny: bool) -> None:
        self.folder, self.content = (
            folder,
            {"schema": 1, "tiny": tiny, "machine": None, "results": {}},
        )
        with suppress(FileNotFoundError):
            try:
                self.content = json.loads((folder / "results.json").read_text(encoding="utf-8"))
                assert self.content["schema"] == 1 and isinstance(self.content["results"], dict)
            except (ValueError, KeyError, TypeError, AssertionError):
                raise SystemExit(
                    mistake(f"{folder / 'results.json'} is damaged", "remove it, or another --out")
                ) from None
            if self.content["tiny"] != tiny:
                raise SystemExit(
                    mistake(
                        f"{folder} holds results {'with' if not tiny else 'without'} --tiny",
                        "another --out",
                    )
                )

    def __getitem__(self, name: str) -> dict[str, Any] | None:
        return self.content["results"].get(name)  # type: ignore[no-any-return]

    def on(self, machine: dict[str, Any]) -> None:
        """Raises SystemExit where what is here was found on another device."""
        before = self.content["machine"]
        if before is not None and before["device"] != machine["device"]:
            raise SystemExit(
                mistake(
                    f"{self.folder} holds results of {before['device']}, this is {machine['device']}",
                    "another --out",
                )
            )
        self.content["machine"] = machine
        self.write()

    def add(self, name: str, result: dict[str, Any]) -> None:
        self.content["results"][name] = result
        self.write()

    def write(self) -> None:
        write_whole(
            self.folder / "results.json", (json.dumps(self.content, indent=1) + "\n").encode()
        )
        write_whole(self.folder / "results.md", markdown(self.content).encode())


def verdict(item: Item, answer: dict[str, Any], machine: dict[str, Any]) -> dict[str, Any]:
    """An answer as it is kept: with one of the five words for what it means."""
    if "error" in answer:
        return {"status": FAILED, "value": answer["error"], "goal": ""}
    good = answer["good"]
    bad = MISSED if item.group in ("memory", "fast") else FAILED
    status = MEASURED if good is None else PASSED if good else bad
    if status != FAILED and machine["gpus"] < item.gpus:
        status = NEEDS
    return {"status": status, **{key: answer[key] for key in ("value", "goal", "detail")}}


def markdown(content: dict[str, Any]) -> str:
    """The results as tables, for benchmarks/README.md."""
    machine, results = content["machine"] or {}, content["results"]
    lines = [
        _machine(machine) + (" (--tiny: a rehearsal, no result)" if content["tiny"] else ""),
        "",
    ]
    known = {item.name: item for item in items()}
    for group, title in GROUPS.items():
        rows = [
            (known[name], results[name])
            for name in known
            if name in results and known[name].group == group
        ]
        if not rows:
            continue
        lines += [f"### {title}", "", "| | found | asked | |", "|---|---|---|---|"]
        lines += [
            f"| {item.what} | {_cell(one['value'])} | {_cell(one['goal'])} | {one['status']} |"
            for item, one in rows
        ]
        if group == "fast" and (total := whole_row(results)) is not None:
            word = (
                MEASURED
                if content["tiny"] or not machine.get("gpus")
                else PASSED
                if total <= ROW_GOAL
                else MISSED
            )
            lines.append(
                f"| a whole row of the board | {total:.1f} s after encoding | {ROW_GOAL:.0f} s | {word} |"
            )
        lines.append("")
    return "\n".join(lines + closing(content)) + "\n"


def _machine(machine: dict[str, Any]) -> str:
    """The device, unless it is the processor that stands in the line of the machine anyway."""
    if not machine:
        return "nothing ran yet"
    names = (
        [machine["machine"]]
        if machine["device"] in machine["machine"]
        else [machine["device"], machine["machine"]]
    )
    return "; ".join(names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def whole_row(results: dict[str, Any]) -> float | None:
    """Seconds of all suites together; None until each was measured, with all of its scoring."""
    each = [(results.get(f"fast.row-{suite}") or {}).get("detail", {}) for suite in ROW]
    return sum(one["seconds"] for one in each) if all(one.get("whole") for one in each) else None


def closing(content: dict[str, Any]) -> list[str]:
    """What failed, what missed its goal, which promise is to be mended and what is missing: a line each."""
    results = content["results"]
    lines = []
    for word, group, title in (
        (FAILED, "", "Failed"),
        (MISSED, "fast", "Goals missed"),
        (MISSED, "memory", "Promises to mend"),
    ):
        those = [
            (name, one)
            for name, one in results.items()
            if one["status"] == word and name.startswith(group)
        ]
        lines += [f"{title}: {name}: {_cell(one['value'])}" for name, one in those]
    missing = [item.name for item in items() if item.name not in results]
    more = f" and {len(missing) - 5} more" if missing[5:] else ""
    lines += [f"Not measured yet: {', '.join(missing[:5])}{more}"] if missing else []
    return lines or ["Everything was measured, nothing failed."]


# the order of work


def wanted(only: str | None, every: Sequence[Item]) -> list[Item]:
    """The items that --only names: names, or beginnings of them up to a dot or a dash. Raises SystemExit."""
    if only is None:
        return list(every)
    chosen: list[Item] = []
    for name in filter(None, (part.strip() for part in only.split(","))):
        found = [
            one
            for one in every
            if one.name == name or one.name.startswith((f"{name}.", f"{name}-"))
        ]
        if not found:
            near = difflib.get_close_matches(
                name, [*GROUPS, *(one.name for one in every)], n=3, cutoff=0.4
            )
            raise SystemExit(
                mistake(
                    f"--only {name}: no such measurement",
                    f"nearest: {', '.join(near) or ', '.join(GROUPS)}; --list shows all",
                )
            )
        chosen += found
    if not chosen:
        raise SystemExit(mistake("--only names nothing", f"groups are {', '.join(GROUPS)}"))
    return [one for one in every if one in chosen]


def mistake(what: str, hint: str) -> int:
    print(f"error: {what}\ntry: {hint}", file=sys.stderr)
    return 2


def to_do(chosen: Sequence[Item], results: Results, again: bool) -> list[Item]:
    """What is missing in the order of importance, then what failed; with ``again`` everything that was chosen."""
    if again:
        return list(chosen)
    missing = [one for one in chosen if results[one.name] is None]
    return missing + [
        one
        for one in chosen
        if (known := results[one.name]) is not None and known["status"] == FAILED
    ]


class Run:
    """One call of this command."""

    def __init__(
        self,
        options: argparse.Namespace,
        scratch: Path,
        chosen: Sequence[Item],
        results: Results,
        view: View,
    ) -> None:
        self.options, self.scratch, self.chosen, self.results, self.view = (
            options,
            scratch,
            chosen,
            results,
            view,
        )
        self.began, self.worker, self.machine = time.monotonic(), None, {}
        self.pace = 1.0  # how long measurements take, compared with what was expected
        self.ended: list[str] = []  # names that found no time

    worker: Worker | None

    def left(self) -> float:
        return 60 * self.options.minutes - (time.monotonic() - self.began)

    def all(self) -> None:
        self.start({})
        for item in to_do(self.chosen, self.results, self.options.again):
            if item.seconds * self.pace + (START if item.alone else 0) > self.left():
                self.ended.append(item.name)
                continue
            self.one(item)
        self.stop()

    def one(self, item: Item) -> None:
        assert self.machine
        if self.machine["gpus"] and self.machine["gpus"] < item.gpus:
            return self.keep(
                item,
                {
                    "status": NEEDS,
                    "value": f"needs {item.gpus} GPUs, {self.machine['gpus']} here",
                    "goal": "",
                },
                0.0,
            )
        if item.alone or self.worker is None or self.worker.environment:
            self.start(item.environment)
        assert self.worker is not None
        self.view.running(item)
        began = time.monotonic()
        patience = max(PATIENCE[self.options.device], 6 * item.seconds * self.pace)
        limit = min(patience, self.left() + 30)
        try:
            answer = self.worker.ask(item, limit, lambda: self.view.tick(time.monotonic() - began))
        except Died as how:
            answer = {
                "error": f"{how}; the end of it is in {self.options.out / 'log.txt'}",
                "poisoned": True,
            }
        except Slow:
            self.stop()
            if limit < patience:  # the minutes are over: the next call begins it again
                self.ended.append(item.name)
                return None
            answer = {"error": f"no answer in {limit:.0f} s, {item.seconds:.0f} were expected"}
        took = time.monotonic() - began
        self.keep(item, verdict(item, answer, self.machine), took)
        if answer.get("poisoned") or item.alone:
            self.stop()
        if "error" not in answer and took > 2:
            self.pace = min(4.0, max(0.3, 0.8 * self.pace + 0.2 * took / item.seconds))

    def keep(self, item: Item, result: dict[str, Any], seconds: float) -> None:
        self.results.add(item.name, {**result, "seconds": round(seconds, 1), "commit": commit()})
        self.view.done(item, result, seconds)

    def start(self, environment: dict[str, str]) -> None:
        """A fresh process that measures. Raises SystemExit where there cannot be one."""
        self.stop()
        self.options.out.mkdir(parents=True, exist_ok=True)
        self.worker = Worker(self.options, self.scratch, self.options.out / "log.txt", environment)
        try:
            machine = self.worker.hear(300, lambda: self.view.tick(0.0))
        except (Died, Slow) as how:
            raise SystemExit(
                mistake(
                    f"the process that measures did not start: {how}",
                    f"see {self.options.out / 'log.txt'}",
                )
            ) from None
        if "error" in machine or (self.options.device != "cpu" and not machine["gpus"]):
            raise SystemExit(
                mistake(
                    f"--device {self.options.device}: {machine.get('error', 'no GPU is here')}",
                    "--device cpu --tiny rehearses everything without one",
                )
            )
        if not self.machine:
            self.results.on(machine)
            self.view.machine(machine)
        self.machine = machine

    def stop(self) -> None:
        if self.worker is not None:
            self.worker.end()
        self.worker = None


def commit() -> str:
    """The commit of this checkout, with a + where files differ from it; "unknown" where git does not say."""
    try:
        said = [
            subprocess.run(
                ["git", "-C", str(HERE), *what],
                capture_output=True,
                text=True,
                timeout=5,
                check=True,
            ).stdout.strip()
            for what in (("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "-uno"))
        ]
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return said[0] + ("+" if said[1] else "")


# what is seen


class View:
    """A line for every measurement as it ends; on a terminal also a table that shows what runs, how far all is and what is left."""

    def __init__(self, chosen: Sequence[Item], results: Results, out: IO[str]) -> None:
        self.chosen, self.results, self.out, self.live = chosen, results, out, None
        self.item: Item | None = None
        self.seconds = 0.0
        if out.isatty():
            from rich.console import Console
            from rich.live import Live

            self.live = Live(
                console=Console(file=out), refresh_per_second=4, get_renderable=self.table
            )
            self.live.start()

    live: Any

    def table(self) -> Any:
        from rich.table import Table

        table = Table(box=None)
        for title in ("", "done", "failed", "missed", "left"):
            table.add_column(title)
        for group, title in GROUPS.items():
            those = [self.results[one.name] for one in self.chosen if one.group == group]
            words = [one["status"] for one in those if one is not None]
            if those:
                table.add_row(
                    title,
                    str(len(words)),
                    str(words.count(FAILED)),
                    str(words.count(MISSED)),
                    str(those.count(None)),
                )
        if self.item is not None:
            table.add_row(
                f"{self.item.name} …", f"{self.seconds:.0f} of about {self.item.seconds:.0f} s"
            )
        return table

    def say(self, text: str) -> None:
        if self.live is not None:
            self.live.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self.out, flush=True)

    def machine(self, machine: dict[str, Any]) -> None:
        self.say(_machine(machine))

    def running(self, item: Item) -> None:
        self.item, self.seconds = item, 0.0

    def tick(self, seconds: float) -> None:
        self.seconds = seconds

    def done(self, item: Item, result: dict[str, Any], seconds: float) -> None:
        self.item = None
        self.say(f"{result['status']:11} {seconds:6.1f} s  {item.name}: {result['value']}")

    def end(self) -> None:
        self.item = None
        if self.live is not None:
            self.live.stop()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="bench-gpu-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    options = arguments()
    every = items()
    if options.serve:
        serve(options.device, options.tiny, Path(options.serve[0]), int(options.serve[1]))
        return 0
    if options.list:
        print(
            "".join(f"{one.name:28} about {one.seconds:3.0f} s  {one.what}\n" for one in every),
            end="",
        )
        return 0
    chosen, results = wanted(options.only, every), Results(options.out, options.tiny)
    view = View(chosen, results, sys.stdout)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with scratch_folder() as scratch:
        run = Run(options, scratch, chosen, results, view)
        try:
            run.all()
        except KeyboardInterrupt:
            view.end()
            print(f"stopped; the same command goes on from here: {options.out}", flush=True)
            return 130
        finally:
            run.stop()
            view.end()
    if run.ended:
        print(
            f"no time was left for {len(run.ended)}: the same command goes on with {run.ended[0]}"
        )
    for line in closing(results.content):
        print(line)
    print(f"{options.out / 'results.md'}, {options.out / 'results.json'}")
    return int(any(one["status"] == FAILED for one in results.content["results"].values()))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--minutes",
        type=_minutes,
        default=10.0,
        help="time to spend; what does not fit is left for the next call  [10]",
    )
    add(
        "--only",
        metavar="NAMES",
        help=f"groups or measurements, with commas: {', '.join(GROUPS)}, right.simcse, fast.row; --list shows all",
    )
    add(
        "--out", type=Path, default=Path("gpu-results"), help="folder of the results  [gpu-results]"
    )
    add("--device", default="cuda", choices=("cuda", "cpu"), help="[cuda]")
    add("--tiny", action="store_true", help="small shapes and few steps: a rehearsal")
    add("--again", action="store_true", help="measure again what is there already")
    add("--list", action="store_true", help="show the measurements in their order, and end")
    add("--serve", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def _minutes(text: str) -> float:
    minutes = float(text)
    if not minutes > 0:
        raise argparse.ArgumentTypeError("more than 0")
    return minutes


if __name__ == "__main__":
    sys.exit(main())
