"""``bench.train``: train methods and score them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bench.base.paths import recorded_path, recorded_word
from bench.library.arguments import (
    Methods,
    PathLike,
    Plugins,
    Seeds,
    check_recipe_keys,
    classes_of,
    find_methods,
    read_arguments,
    recipe_texts,
)
from bench.library.corpora import corpus_place
from bench.library.results import Results
from bench.library.running import choose_reporter, collect_results
from bench.library.terms import in_python_terms
from bench.method.config import RunConfig
from bench.run.request import make_plan
from bench.run.session import Session

Setting = Literal["unsupervised", "supervised", "none"]


@in_python_terms
def train(
    method: Methods,
    backbone: PathLike | Sequence[PathLike] | None = None,
    corpus: Any = None,
    seeds: Seeds = 42,
    *,
    suites: PathLike | Sequence[PathLike] = ("sts",),
    data: PathLike | None = None,
    name: str = "",
    setting: Setting | None = None,
    variant: str = "",
    budget: str | None = None,
    precision: str = "auto",
    chunk: int | None = None,
    compile: bool = False,
    device: str = "auto",
    fresh: bool = False,
    offline: bool = False,
    allow_pickle: bool = False,
    plugins: Plugins = (),
    runs: PathLike | None = None,
    progress: bool = True,
    settings: Mapping[str, Any] | None = None,
    **recipe: Any,
) -> Results:
    """Train methods and score them as ``bench run`` does: a run for each method, backbone and seed.

        bench.train("simcse", corpus="wiki.txt", seeds=[1, 2], batch_size=128)
        bench.train([MyLoss, "simcse"], corpus=["A sentence.", "Another one."], suites="check")

    Finished runs are not repeated, interrupted ones resume.

    Args:
        method: A name of ``bench methods`` ("promcse", with a variant "promcse+eh"), a Method class
            of this script or notebook, a Python file with methods, a recipe file, or a list of
            these.
        backbone: A hub name, a folder, "builtin", or several. None: the recipe file's, else
            "builtin".
        corpus: A file (with the columns to read, "pairs.csv:question,answer"), several files
            (a list of Paths), a name that recipes use, a list of sentences or of
            pairs, columns as a dictionary, a datasets.Dataset, or a DataFrame. Anything but a file
            is written to the cache under the hash of its content. None: the recipe's.
        seeds: A number, several, or "1-5".
        suites: Names of ``bench suites``, or files of your own.
        data: The folder with evaluation data. None: $BENCH_DATA, or fetched.
        name: The backbone's name in tables.
        setting: "unsupervised", "supervised" or "none". None: the one with a recipe for the
            backbone.
        variant: The variant of methods that name none.
        budget: The length of training: "500steps", "10m", "2epochs". None: the recipe's.
        precision: "auto", "fp32", "tf32", "bf16" or "fp16". Scores are always computed in float32.
        chunk: Rows of a batch in memory at a time, with the same gradient. None: all.
        compile: Let torch compile the encoder.
        device: "auto", "cpu", "cuda:1" or "mps".
        fresh: Repeat finished runs.
        offline: Open no connection.
        allow_pickle: Accept backbones with weights in a pickle.
        plugins: Further Python files and classes, with suites or methods.
        runs: The folder of the runs. None: $BENCH_RUNS, or ./runs.
        progress: Show lines and bars.
        settings: Values of the recipe as a dictionary.
        **recipe: Every other keyword is a value of the recipe: ``batch_size=128``,
            ``temperature=0.1``. A list, ``temperature=[0.05, 0.1]``, is a run for each.

    Returns:
        One result for each run, in order.

    Raises:
        BenchError: For the first run that fails, and for an argument that cannot work.
        UnknownName: For an unknown argument or name, with the nearest names.
    """
    arguments = locals()
    values = recipe_texts(settings, recipe)
    methods = find_methods(method, plugins)
    check_recipe_keys(values, train, classes_of(methods))
    fields = read_arguments(arguments, overrides=values, corpus=corpus_place(corpus), **methods)
    fields["command"] = _command(RunConfig(**fields), {**(settings or {}), **recipe})
    session = Session.begin(make_plan(fields), choose_reporter(progress))
    return Results(collect_results(session, session.plan_runs().runs))


def _command(config: RunConfig, values: Mapping[str, Any]) -> str:
    """Return the call as a record holds it, without absolute paths."""
    named = [*config.methods, *map(recorded_path, config.recipes)]
    backbones = [recorded_path(name) for name in config.backbones]
    corpus: str | list[str] | None = None
    if isinstance(config.corpus, str):
        corpus = recorded_word(config.corpus)
    elif config.corpus is not None:
        corpus = [recorded_word(text) for text in config.corpus]
    parts = [
        repr(_one_or_list(named)),
        f"backbone={_one_or_list(backbones)!r}",
        f"corpus={corpus!r}",
        f"seeds={list(config.seeds)}",
    ]
    parts += [f"{key}={_recorded(value)!r}" for key, value in values.items()]
    return f"bench.train({', '.join(parts)})"


def _one_or_list(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values


def _recorded(value: Any) -> Any:
    """Return a recipe value as a record shows it; a file or a folder by its name."""
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        return recorded_path(text) if os.path.exists(text) else text
    return value
