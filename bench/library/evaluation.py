"""``bench.evaluate``: score a ready-made encoder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec.structs import replace as replace_config

from bench.base.paths import recorded_word
from bench.base.sides import DOCUMENT, QUERY
from bench.library.arguments import (
    PathLike,
    Plugins,
    as_path,
    check_argument,
    check_mapping,
    check_recipe_keys,
    listed,
    read_arguments,
    recipe_texts,
    use_plugins,
)
from bench.library.results import Result, Results
from bench.library.running import choose_reporter, collect_results
from bench.library.terms import in_python_terms
from bench.method.config import RunConfig
from bench.method.plugins import discover
from bench.records.store import RunsFolder
from bench.run.external import (
    Model,
    check_model,
    check_prompts,
    doubt_about,
    find_model,
    plan_model,
    tell_apart,
)
from bench.run.plan_toml import Plan
from bench.run.request import make_plan
from bench.run.session import Session
from bench.run.smaller import Sizes, smaller_runs, with_sizes


@in_python_terms
def evaluate(
    model: Any,
    suites: PathLike | Sequence[PathLike] = ("sts",),
    data: PathLike | None = None,
    name: str = "",
    *,
    prefix: str | None = None,
    prompts: Mapping[str, str] | None = None,
    prompt_query: str | None = None,
    prompt_document: str | None = None,
    dimensions: Sequence[int] = (),
    precision: str | Sequence[str] = (),
    device: str = "auto",
    fresh: bool = False,
    offline: bool = False,
    allow_pickle: bool = False,
    plugins: Plugins = (),
    runs: PathLike | None = None,
    progress: bool = True,
    settings: Mapping[str, Any] | None = None,
    **recipe: Any,
) -> Result:
    """Score a ready-made encoder as ``bench evaluate`` does; its record goes to the runs folder.

        bench.evaluate(encode, suites="check", name="mine")
        bench.evaluate("bert-base-uncased", suites=["sts", "transfer"], data="DATA", pooling="mean")

    The same call again repeats nothing, unless the object has changed. bench identifies a
    SentenceTransformer by its weights, and another object by its vectors for fixed sentences and
    for some thousand of the scored ones.

    Args:
        model: An object with ``encode(list of n str) -> (n, d) numbers``, and perhaps
            ``encode_query`` and ``encode_document`` for retrieval, a function that does so,
            a mapping of sentences to vectors, or an argument of ``bench evaluate``: a hub name, a
            folder, a run, ``vectors:FILE``.
        suites: Names of ``bench suites``, or files of your own.
        data: The folder with evaluation data. None: $BENCH_DATA, or fetched.
        name: The model's name in tables.
        prefix: Put before every sentence, or around it with "[X]". "" removes a folder's default
            prompt, None keeps it.
        prompts: Other prefixes, by task or suite.
        prompt_query: Another prefix for queries, of retrieval and of pairs with two sides. None: a
            folder's own.
        prompt_document: Another prefix for documents.
        dimensions: Also score the first N numbers of each vector: ``result.smaller``.
        precision: Also score the vectors in these precisions: "float32", "int8", "binary".
        device: "auto", "cpu", "cuda:1" or "mps".
        fresh: Score again.
        offline: Open no connection.
        allow_pickle: Accept weights in a pickle.
        plugins: Python files with suites, or with the method of a run, and Method classes.
        runs: The folder of the runs. None: $BENCH_RUNS, or ./runs.
        progress: Show lines and bars.
        settings: Recipe values as a dictionary.
        **recipe: Every other keyword is a recipe value of a folder or hub model:
            ``pooling="mean"``, ``max_length=128``, ``dtype="bf16"``.

    Returns:
        The scores, with a prediction for every item.

    Raises:
        BenchError: If there is no model, for wrong vectors (shape, NaN, a dimension that changes),
            and for missing data.
        UnknownName: For an unknown argument or name, with the nearest names.
    """
    arguments = locals()
    del arguments["precision"]  # in which a method is trained has the same name
    sizes = Sizes.read(listed(dimensions), listed(precision))
    values = recipe_texts(settings, recipe)
    if values:
        every_method = [plugin.cls for plugin in discover([]).plugins.values()]
        check_recipe_keys(values, evaluate, every_method)
    sides = {QUERY: prompt_query, DOCUMENT: prompt_document}
    _check_types(name, {"prefix": prefix, **{f"prompt_{s}": sides[s] for s in sides}}, prompts)
    fields = read_arguments(arguments, plugins=use_plugins(plugins))
    (config,) = make_plan(fields).runs
    check_prompts(prompts or {}, config.suites)
    encoder = find_model(
        model,
        runs=RunsFolder(as_path(runs)),
        name=name,
        prompt=prefix,
        prompts=prompts,
        sides=sides,
        values=values,
    )
    command = _command(model, encoder.label, config.suites, name)
    config = replace_config(config, command=command)
    return _score(encoder, config, progress, sizes)


def _check_types(
    name: str, texts: Mapping[str, str | None], prompts: Mapping[str, str] | None
) -> None:
    """Raise BenchError for an argument of another type."""
    check_argument("name", name, str)
    for argument, text in texts.items():
        if text is not None:
            check_argument(argument, text, str)
    check_mapping(prompts, "prompts", 'prompts={"STS-B": "query: "}')
    for task, text in (prompts or {}).items():
        check_argument(f"prompts[{task!r}]", text, str)


def _score(encoder: Model, config: RunConfig, progress: bool, sizes: Sizes) -> Result:
    """Score a model, with a record in its folder of runs; warn if its vectors look wrong."""
    session = Session.begin(Plan((config,)), choose_reporter(progress))
    session = replace(session, store=encoder.store(session.store))
    (run,) = session.prepare(partial(plan_model, encoder, session.config)).runs
    run = with_sizes(run, sizes)
    check_model(run)
    doubt = doubt_about(run)
    if doubt:
        warnings.warn(doubt, stacklevel=4)
    run = tell_apart(run, session.store, session.config)
    (whole,) = collect_results(session, [run])
    smaller = collect_results(session, smaller_runs(run, whole.record, sizes)) if sizes else []
    return replace(whole, smaller=Results(smaller))


def _command(model: Any, label: str, suites: Sequence[str], name: str) -> str:
    """Return the call as a record holds it: files and folders by their names, objects by type."""
    named = recorded_word(label) if isinstance(model, str | os.PathLike) else type(model).__name__
    arguments = [named, f"suites={list(suites)}"]
    if name:
        arguments.append(f"name={name!r}")
    return f"bench.evaluate({', '.join(arguments)})"
