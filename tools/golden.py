"""Golden files: numbers that a change of code must not move.

``python tools/golden.py [NAME ...]`` writes ``tests/golden/`` anew, compressed; its README says
what each file holds. The tests there compute the same and compare. A change that is meant is a
commit of its own, which says what moved and why.

Everything is asked for as a stranger would: the command of the package, its functions of Python.
"""

from __future__ import annotations

import csv
import functools
import json
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden"
BACKBONES = ("builtin", "bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large")
# methods that bring their own
WITHOUT_BACKBONE = ("glove-avg", "infersent")
FINISHED = ("cls", "first-last-avg", "last-avg", "embedding-last-avg")
STEPS = 20
SHORT = {"max_steps": STEPS, "batch_size": 8, "max_seq_length": 16, "select_on": "last"}
# a method may need more than its recipe: a teacher or a generator that is here
NEEDS = {
    "dclr": {"teacher": "builtin"},
    "diffcse": {"generator": "builtin"},
    "guided-simcse": {"guide": "builtin"},
    "rankcse": {"teacher_1": "builtin"},
    "truncated": {"pooling": "cls"},
}
# fitted in one pass over a text, without steps
FITTED = ("flow", "whitening")
SENTENCES = [
    "A man is playing a guitar.",
    "A person plays the guitar on a stage in front of a small crowd.",
    "Nobody is playing music.",
    "Two dogs run across a field of snow, and the larger one carries a stick in its mouth.",
    "The stock market fell by 3.5 % on Tuesday, its largest loss since 2009.",
    "How do I change the language of my phone?",
    "Stop!",
    "The committee, which had met twice, did not agree on anything; its chair resigned.",
    "A woman in a red coat waits for the bus.",
    "She doesn't know (yet) that it isn't going to come.",
]
"""Ten sentences of one to more than sixteen tokens, with marks and digits."""
FIRST = 16
"""How many coordinates of a vector are kept; its length and its cosines see the others."""
# of a suite that takes minutes, some of its tasks
TASKS = {"clustering": ("AgNews", "SearchSnippets", "StackOverflow", "Tweet")}
# further protocols of a suite, whose texts are here, too
ON_REQUEST = {"sts": ("senteval-all-raw/1", "senteval-all-without-16-tokens/1")}
SUITES = (
    "check",
    "sts",
    "sts-multi",
    "cxc",
    "transfer",
    "fewshot",
    "clustering",
    "geometry",
)


def command(*words: str) -> tuple[int, str, str]:
    """Run ``bench`` in this process, and return its exit code, what it printed, and its errors."""
    from click.testing import CliRunner

    done = CliRunner(env={"COLUMNS": "200"}).invoke(_script(), words)
    return done.exit_code, done.stdout, done.stderr


@functools.cache
def _script() -> Any:
    """Return what ``bench`` on a terminal calls; to look for it among all packages takes a while."""
    (script,) = entry_points(group="console_scripts", name="bench")
    return script.load()


def methods() -> Iterator[tuple[str, str | None, str]]:
    """Yield (method, setting, variant), of each method also without a setting."""
    for about in json.loads(command("methods", "--json")[1]):
        for setting in (None, *about["settings"]):
            for variant in ("", *about["variants"]):
                yield about["name"], setting, variant


def named(method: str, variant: str) -> str:
    return f"{method}+{variant}" if variant else method


# tables of the newest version


OF_A_ROW = ("seeds", "mean", "sd", "se", "ci_low", "ci_high")
OF_A_DIFFERENCE = ("difference", "se", "df", "ci_low", "ci_high", "ci_level", "p", "verdict")


def compare() -> dict[str, Any]:
    """Return "suite, protocol, setting, backbone, budget, text: row of backbone" -> its numbers and
    verdict, of every table of the newest version.
    """
    from published_rows import NEWEST, compared
    from recomputed import name_of

    found = {}
    for table in compared(str(NEWEST / "runs")):
        place = ", ".join(str(table[key]) for key in ("suite", "protocol", "setting", "backbone"))
        place += "".join(f", {table[key]}" for key in ("budget", "text") if table[key])
        for row in table["rows"]:
            numbers: dict[str, Any] = {key: row[key] for key in OF_A_ROW}
            numbers["values"] = {task: cell["values"] for task, cell in row["cells"].items()}
            if row["against"] and row["against"]["verdict"]:
                numbers |= {f"against {key}": row["against"][key] for key in OF_A_DIFFERENCE}
            found[f"{place}: {name_of(row)} of {row['backbone']}"] = numbers
    return found


# plans


def plans(
    backbones: Collection[str] = BACKBONES, *, variants: bool = True, bare: bool = True
) -> dict[str, Any]:
    """Return "method+variant, setting, backbone" -> setting, corpus, printed value, and of each
    value of the recipe [value, source].

    The entry is {"refused": the error} if there is no such plan. ``bare``: also of commands without
    a setting.
    """
    found = {}
    for method, setting, variant in methods():
        if (variant and not variants) or (setting is None and not bare):
            continue
        for backbone in BACKBONES[:1] if method in WITHOUT_BACKBONE else backbones:
            name = named(method, variant)
            found[f"{name}, {setting or 'no setting'}, {backbone}"] = _plan(name, setting, backbone)
    return found


def _plan(name: str, setting: str | None, backbone: str) -> Any:
    words = ["run", name, "--backbone", backbone, "--dry-run", "--json", "--all"]
    words += ["--suite", "check" if backbone == "builtin" else "sts"]
    words += ["--setting", setting] if setting else []
    for key, value in NEEDS.get(name.partition("+")[0], {}).items():
        words += ["--set", f"{key}={value}"]
    code, out, errors = command(*words)
    if code:
        assert code == 2 and errors.startswith("error: "), (words, code, errors)
        refused = errors.splitlines()[0].removeprefix("error: ")
        return {"refused": refused.replace(f"{ROOT}/", "")}
    plan = json.loads(out)
    recipe = {key: [of["value"], of["source"]] for key, of in sorted(plan["recipe"].items())}
    return {
        "setting": plan["setting"],
        "corpus": plan["corpus"],
        "printed": plan["printed"] and plan["printed"]["value"],
        "recipe": recipe,
    }


# trainings


@dataclass(frozen=True)
class Trained:
    """What 20 steps of a method gave."""

    losses: list[float]
    # ten sentences after the last step
    vectors: dict[str, Any]


def trainings(
    only: Collection[str] | None = None, *, variants: bool = True
) -> Iterator[tuple[str, Trained]]:
    """Yield "method+variant, setting" and what came of it, for everything that trains in steps on
    the text at hand; ``only``: for these methods.
    """
    import bench

    with tempfile.TemporaryDirectory() as place:
        texts = [text(Path(place)) for text in TEXTS_OF_TRAINING]
        for method, setting, variant in methods():
            chosen = (only is None or method in only) and (variants or not variant)
            if not chosen or setting in (None, "none") or method in FITTED:
                continue
            for corpus in texts:
                try:
                    trained = _train(named(method, variant), setting, corpus, Path(place))
                except bench.BenchError:
                    continue  # another text, or a variant that another setting has
                yield f"{named(method, variant)}, {setting}", trained
                break


def _train(name: str, setting: str, corpus: str, place: Path) -> Trained:
    import bench

    needed = NEEDS.get(name.partition("+")[0], {})
    if name == "infersent":
        needed = {"vectors": _word_vectors(place), "lstm_size": 64}
    with losses_of_steps() as losses:
        (result,) = bench.train(
            name,
            setting=setting,
            corpus=corpus,
            suites=str(_pairs(place)),
            seeds=1,
            runs=place / "runs",
            device="cpu",
            progress=False,
            settings={**SHORT, **needed},
        )
    vectors = bench.load_run(result, device="cpu").encode(SENTENCES)
    assert len(losses) == STEPS, (name, setting, len(losses))
    return Trained([rounded(loss, 6) for loss in losses], summary(vectors))


@contextmanager
def losses_of_steps() -> Iterator[list[float]]:
    """Collect every loss that is differentiated: ``curve.jsonl`` has means over 25 steps."""
    from torch import Tensor

    losses: list[float] = []

    def backward(loss: Any, *given: Any, **named: Any) -> None:
        losses.append(loss.item())
        differentiate(loss, *given, **named)

    differentiate = Tensor.backward
    Tensor.backward = backward  # type: ignore[method-assign]
    try:
        yield losses
    finally:
        Tensor.backward = differentiate  # type: ignore[method-assign]


def summary(vectors: Any) -> dict[str, Any]:
    """Return the first coordinates, lengths, and cosines of each two, of some vectors."""
    import numpy as np

    wide = np.asarray(vectors, dtype=float)
    length = np.linalg.norm(wide, axis=1)
    cosines = (wide @ wide.T) / np.outer(length, length)
    return {
        "width": wide.shape[1],
        "first": [[rounded(one, 5) for one in row[:FIRST]] for row in wide],
        "length": [rounded(one, 5) for one in length],
        "cosines": [rounded(one, 5) for one in cosines[np.triu_indices(len(wide), 1)]],
    }


def rounded(number: float, digits: int) -> float:
    return float(f"{number:.{digits}g}")


def _sentences(place: Path) -> str:
    return "builtin"


def _own_sentences(count: int) -> list[str]:
    packed = (ROOT / "bench" / "builtin" / "data" / "sentences.txt.xz").read_bytes()
    return lzma.decompress(packed).decode().splitlines()[:count]


def _triplets(place: Path) -> str:
    """Write 320 made triplets of the package's own sentences: each with its neighbour and a distant
    one.
    """
    texts = _own_sentences(322)
    rows = zip(texts[:320], texts[1:321], reversed(texts[:320]), strict=True)
    return _written(place / "triplets.csv", ("sent0", "sent1", "hard_neg"), rows)


def _rated(place: Path) -> str:
    """Write 320 pairs of neighbours with ratings from 0 to 5."""
    texts = _own_sentences(322)
    rows = [(texts[i], texts[i + 1], i % 6) for i in range(320)]
    return _written(place / "rated.csv", ("sentence1", "sentence2", "score"), rows)


def _rated_by_a_model(place: Path) -> str:
    """Write 320 pairs of neighbours with ratings from 0 to 1."""
    texts = _own_sentences(322)
    rows = [(texts[i], texts[i + 1], i % 6 / 5) for i in range(320)]
    return _written(place / "rated-by-a-model.csv", ("sentence1", "sentence2", "score"), rows)


def _labelled(place: Path) -> str:
    """Write 320 pairs of neighbours with labels of NLI."""
    texts = _own_sentences(322)
    rows = [(texts[i], texts[i + 1], i % 3) for i in range(320)]
    return _written(place / "labelled.csv", ("premise", "hypothesis", "label"), rows)


TEXTS_OF_TRAINING = (_sentences, _triplets, _rated, _rated_by_a_model, _labelled)


def _word_vectors(place: Path) -> str:
    """Write vectors of the words of the package's sentences, which their letters draw."""
    words = sorted({word.lower() for text in _own_sentences(322) for word in text.split()})
    lines = [" ".join([word, *(f"{one:.4f}" for one in _random_word(word))]) for word in words]
    path = place / "vectors.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def _pairs(place: Path) -> Path:
    """Write five rated pairs, so that a run has something to score."""
    rows = [(SENTENCES[i], SENTENCES[i + 5], i) for i in range(5)]
    return Path(_written(place / "pairs.csv", ("sentence1", "sentence2", "score"), rows))


def _written(path: Path, header: Sequence[str], rows: Any) -> str:
    if not path.exists():
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
    return str(path)


def losses(methods: Collection[str] | None = None) -> dict[str, list[float]]:
    """Compute the losses of all methods, or of the named ones."""
    return {key: of.losses for key, of in trainings(methods)}


# scores


def scores(methods: Collection[str] = FINISHED) -> dict[str, Any]:
    """Compute the scores in ``check`` of all encoders that nobody trained, or of the named ones."""
    import bench

    with tempfile.TemporaryDirectory() as place:
        found = {}
        for method in methods:
            (result,) = bench.train(
                method, suites="check", runs=place, device="cpu", progress=False
            )
            found[method] = _scores_of(result)
        return found


def suites(data: Path, names: Sequence[str] = SUITES) -> dict[str, float]:
    """Compute the scores of :func:`random_words` under every protocol of these suites."""
    import bench

    found: dict[str, float] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            parts = [f"{name}:{task}" for task in TASKS.get(name, ())] or [name]
            parts += [f"{name}:{protocol}" for protocol in ON_REQUEST.get(name, ())]
            result = bench.evaluate(
                random_words,
                suites=parts,
                data=data,
                name="random words",
                runs=place,
                progress=False,
            )
            found |= _scores_of(result)
    return found


def _scores_of(result: Any) -> dict[str, float]:
    """Return "suite, protocol, task" -> score."""
    found = {}
    for score in result.scores:
        key = f"{score.suite}, {score.protocol}, {score.task}"
        found[key] = round(score.value, 4)
    return found


def random_words(sentences: Sequence[str]) -> Any:
    """Return the sum of the vectors of each sentence's words, which their letters draw."""
    import numpy as np

    return np.stack([sum(map(_random_word, ["", *text.split()])) for text in sentences])


@functools.cache
def _random_word(word: str) -> Any:
    import numpy as np

    return np.random.default_rng(zlib.crc32(word.encode())).normal(size=32)


# files


def as_text(value: dict[str, Any]) -> str:
    """Return a dictionary with one line an entry, so that a diff names the change."""
    lines = [f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def held(name: str) -> dict[str, Any]:
    """Read a golden file."""
    return dict(json.loads(lzma.decompress((FOLDER / f"{name}.xz").read_bytes())))


def write(name: str, value: dict[str, Any]) -> None:
    text = as_text(value).encode()
    (FOLDER / f"{name}.xz").write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(f"{name}: {len(value)} entries")


def code_versions() -> dict[str, int]:
    """Return method -> its ``code_version``."""
    described = json.loads(command("methods", "--json")[1])
    return {about["name"]: about["code_version"] for about in described}


def write_trainings() -> None:
    found = {}
    for key, trained in trainings():
        print(key, flush=True)
        found[key] = trained
    write("code_versions.json", code_versions())
    write("losses.json", {key: of.losses for key, of in found.items()})
    write("vectors.json", {key: of.vectors for key, of in found.items()})


def write_scores() -> None:
    data = Path(os.environ.get("BENCH_SHARED") or ROOT.parent / "shared") / "data"
    write("scores.json", {**scores(), "random words": suites(data)})


WRITERS: dict[str, Callable[[], None]] = {
    "compare": lambda: write("compare.json", compare()),
    "plans": lambda: write("plans.json", plans()),
    "trainings": write_trainings,
    "scores": write_scores,
}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    for wanted in sys.argv[1:] or WRITERS:
        WRITERS[wanted]()
