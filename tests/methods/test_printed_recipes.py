"""What the papers' tables of hyperparameters print is what the obvious command trains with, and the number that it aims at.

The tables are typed here from the papers, not read from the recipe files. A method's paper prints no row twice; ``main`` marks the row
that a command without --setting takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.base.errors import BenchError
from bench.data.sets import DataFolder, Later
from bench.run.plan import PlannedRun, Request, make
from bench.run.plugins import discover
from bench.run.printed import aim
from bench.run.search.space import space_of

REGISTRY = discover()
BB, BL, RB, RL = "bert-base-uncased", "bert-large-uncased", "roberta-base", "roberta-large"
U, S = "unsupervised", "supervised"
MAIN, OTHER = True, False

# (where, METHOD[+VARIANT], setting, main, values of all rows, columns, backbone -> (values, printed STS average or None))
TABLES: list[
    tuple[str, str, str, bool, dict[str, Any], str, dict[str, tuple[tuple[Any, ...], float | None]]]
] = [
    (
        "PromCSE table 6",
        "promcse",
        U,
        MAIN,
        {
            "epochs": 1,
            "temperature": 0.05,
            "max_seq_length": 32,
            "mlm": False,
            "head_at_test": False,
        },
        "batch_size learning_rate prompt_length",
        {BB: ((256, 3e-2, 16), 78.49)},
    ),
    (
        "PromCSE table 6",
        "promcse",
        S,
        OTHER,
        {"epochs": 10, "temperature": 0.05, "mlm": False, "eh": False, "head_at_test": True},
        "batch_size learning_rate prompt_length",
        {BB: ((256, 1e-2, 12), 81.81)},
    ),
    (
        "PromCSE table 6",
        "promcse",
        S,
        MAIN,
        {"epochs": 10, "temperature": 0.05, "mlm": False, "eh": False, "head_at_test": True},
        "batch_size learning_rate prompt_length",
        {RB: ((512, 1e-2, 10), 82.94), RL: ((512, 5e-3, 10), 84.76)},
    ),
    (
        "PromCSE table 6, appendix A",
        "promcse+eh",
        S,
        MAIN,
        {"epochs": 10, "eh": True, "eh_margin": 0.2, "eh_weight": 10},
        "batch_size learning_rate prompt_length",
        {BB: ((256, 1e-2, 12), 82.13), RB: ((512, 1e-2, 10), 83.26), RL: ((512, 5e-3, 10), 85.10)},
    ),
    (
        "PromCSE appendix A",
        "simcse+eh",
        S,
        MAIN,
        {"epochs": 3, "eh": True, "eh_margin": 0.2, "eh_weight": 10},
        "batch_size learning_rate",
        {BB: ((512, 5e-5), 81.94), RB: ((512, 5e-5), 82.86), RL: ((512, 1e-5), 84.08)},
    ),
    (
        "DCPCSE table 3",
        "dcpcse",
        U,
        MAIN,
        {"epochs": 1, "temperature": 0.05, "eval_steps": 125, "shallow": False},
        "batch_size learning_rate prompt_length mlm",
        {
            BB: ((256, 3e-2, 16, False), 78.49),
            BL: ((256, 3e-2, 10, False), 79.42),
            RB: ((64, 3e-2, 14, True), 77.93),
        },
    ),
    (
        "DCPCSE table 3",
        "dcpcse",
        U,
        OTHER,
        {"epochs": 1, "mlm_weight": 0.1, "mlm_decay_rate": 0.95, "mlm_decay_steps": 100},
        "batch_size learning_rate prompt_length mlm",
        {RL: ((64, 1e-2, 10, True), None)},
    ),
    (
        "DCPCSE table 4",
        "dcpcse",
        S,
        OTHER,
        {"epochs": 10, "mlm": False, "head_at_test": True},
        "batch_size learning_rate prompt_length",
        {BB: ((256, 5e-3, 12), 81.65), BL: ((256, 5e-3, 12), 82.89), RB: ((256, 1e-2, 10), 82.94)},
    ),
    (
        "DCPCSE table 4",
        "dcpcse",
        S,
        MAIN,
        {
            "epochs": 10,
            "mlm": False,
            "head_at_test": True,
        },  # the one row of RoBERTa-large in its table 1
        "batch_size learning_rate prompt_length",
        {RL: ((256, 5e-3, 10), 84.76)},
    ),
    (
        "DCPCSE table 2",
        "dcpcse+mlm",
        U,
        MAIN,
        {"mlm": True, "mlm_probability": 0.15},
        "prompt_length",
        {BB: ((16,), 78.10), RB: ((14,), 77.93)},
    ),
    (
        "DCPCSE table 2",
        "dcpcse+no-mlm",
        U,
        MAIN,
        {"mlm": False},
        "batch_size learning_rate prompt_length",
        {RB: ((64, 3e-2, 14), 69.24)},
    ),
    (
        "DCPCSE appendix A",
        "dcpcse+shallow",
        U,
        MAIN,
        {"shallow": True, "mlm": False, "eval_steps": 125},
        "batch_size learning_rate epochs",
        {BB: ((256, 1e-3, 5), 73.28)},
    ),
    (
        "ConPVP table 2",
        "conpvp",
        U,
        MAIN,
        {"prompt_length": 4, "epochs": 1, "eval_steps": 125},
        "batch_size learning_rate",
        {
            BB: ((128, 3e-5), 78.85),
            BL: ((128, 1e-5), 80.01),
            RB: ((128, 1e-5), 79.18),
            RL: ((256, 1e-5), 79.90),
        },
    ),
    (
        "Focal-InfoNCE table 1",
        "focal-infonce",
        U,
        MAIN,
        {"hardness_m": 0.3},  # temperatures: those of its table 4 with the scores of table 2
        "batch_size learning_rate temperature",
        {
            BB: ((64, 3e-5, 0.07), 77.32),
            BL: ((64, 1e-5, 0.07), 78.72),
            RB: ((512, 1e-5, 0.05), 77.58),
            RL: ((512, 3e-5, 0.05), 78.74),
        },
    ),
    (
        "SimCSE table A.1",
        "simcse",
        U,
        MAIN,
        {"epochs": 1, "temperature": 0.05, "max_seq_length": 32, "head_at_test": False},
        "batch_size learning_rate",
        {
            BB: ((64, 3e-5), 76.25),
            BL: ((64, 1e-5), 78.41),
            RB: ((512, 1e-5), 76.57),
            RL: ((512, 3e-5), 78.90),
        },
    ),
    (
        "SimCSE table A.1",
        "simcse",
        S,
        OTHER,
        {"epochs": 3, "temperature": 0.05, "max_seq_length": 32, "head_at_test": True},
        "batch_size learning_rate",
        {
            BB: ((512, 5e-5), 81.57),
            BL: ((512, 1e-5), 82.21),
            RB: ((512, 5e-5), 82.52),
            RL: ((512, 1e-5), 83.76),
        },
    ),
    (
        "PromptBERT run.sh",
        "promptbert",
        U,
        MAIN,
        {"epochs": 1, "temperature": 0.05},
        "batch_size learning_rate",
        {BB: ((256, 1e-5), 78.54), RB: ((256, 1e-5), 79.15)},
    ),
    (
        "PromptBERT run.sh",
        "promptbert",
        S,
        OTHER,
        {"epochs": 3, "temperature": 0.05},
        "batch_size learning_rate",
        {BB: ((512, 5e-5), None), RB: ((512, 5e-5), None)},
    ),
    (
        "DiffCSE, its script",
        "diffcse",
        U,
        MAIN,
        {},
        "batch_size learning_rate epochs",
        {BB: ((64, 7e-6, 2), 78.49)},
    ),
]


def rows() -> Iterator[Any]:
    for where, method, setting, main, of_all, columns, by_backbone in TABLES:
        for backbone, (values, printed) in by_backbone.items():
            cells = dict(zip(columns.split(), values, strict=True)) | of_all
            name = f"{where}: {method}, {setting}, {backbone}"
            yield pytest.param(method, setting, main, backbone, cells, printed, id=name)


def planned(method: str, backbone: str, setting: str | None = None, **values: Any) -> PlannedRun:
    """The first run of ``bench run --method METHOD --backbone BACKBONE``, planned without any data or weights."""
    request = Request(methods=(method,), backbones=(backbone,), setting=setting, **values)
    return make(request, REGISTRY, DataFolder(None, fetcher=Later()))[0]


@pytest.mark.parametrize(
    ("method", "setting", "main", "backbone", "cells", "printed"), list(rows())
)
def test_the_obvious_command_has_the_values_of_the_papers_table(
    method: str,
    setting: str,
    main: bool,
    backbone: str,
    cells: dict[str, Any],
    printed: float | None,
) -> None:
    run = planned(method, backbone, None if main else setting)
    assert run.setting == setting
    assert {key: run.recipe[key] for key in cells} == cells
    assert (run.expect["value"] if run.expect else None) == printed
    if printed is not None:
        assert f"{printed:.2f}" in aim(run)[0]


def test_a_command_without_a_setting_never_takes_one_that_the_paper_does_not_print() -> None:
    """Where several settings have a recipe on a backbone and only some have a printed number, it is one of those."""
    for name in REGISTRY:
        for backbone in (BB, BL, RB, RL):
            try:
                bare = planned(name, backbone)
                printed = [
                    s for s in REGISTRY[name].cls.settings if planned(name, backbone, s).expect
                ]
            except BenchError:  # it needs a file or another run
                continue
            assert bare.setting == printed[0] if printed else bare.expect is None, (name, backbone)


def test_only_the_printed_recipe_has_the_printed_number(tmp_path: Any) -> None:
    text = tmp_path / "wiki1m_for_simcse.txt"
    text.write_text("a man plays\nthe dog runs\n")
    assert planned("simcse", BB).expect["value"] == 76.25  # type: ignore[index]
    for values in (
        {"overrides": {"temperature": "0.2"}},
        {"overrides": {"max_steps": "10"}},
        {"corpus": "builtin"},
        {"corpus": str(text)},
    ):
        assert planned("simcse", BB, **values).expect is None, values
    assert planned("simcse", BB, overrides={"temperature": "0.05"}).expect["value"] == 76.25  # type: ignore[index]
    assert planned("simcse", "builtin").expect is None


def test_a_value_of_a_printed_series_has_its_number() -> None:
    """PromCSE table 4: the margin, on SimCSE."""
    averages = {
        m: planned("simcse+eh", BB, overrides={"eh_margin": m}).expect
        for m in ("0.05", "0.1", "0.2", "0.35", "0.07")
    }
    assert {m: e and e["value"] for m, e in averages.items()} == {
        "0.05": 81.73,
        "0.1": 81.75,
        "0.2": 81.94,
        "0.35": 81.48,
        "0.07": None,
    }
    assert (
        planned("simcse+eh", BB, overrides={"eh_margin": "0.05", "temperature": "0.1"}).expect
        is None
    )


def test_the_recipes_note_stands_in_the_plan() -> None:
    run = planned("promcse", BL)
    assert run.remark == "not tabulated in the PromCSE paper; README only" and run.remark in aim(
        run
    )
    assert planned("promcse", BB).remark == ""


@pytest.mark.parametrize(
    ("name", "settings", "grid"),
    [
        (
            "promcse",
            (U, S),
            {
                "learning_rate": (5e-3, 1e-2, 3e-2),
                "batch_size": (256, 512),
                "prompt_length": (10, 12, 14, 16),
            },
        ),
        (
            "dcpcse",
            (U, S),
            {"learning_rate": (5e-3, 1e-2, 3e-2), "batch_size": (64, 128, 256, 512)},
        ),
        ("promcse+eh", (S,), {"eh_margin": tuple(n / 20 for n in range(9))}),
        ("simcse+eh", (S,), {"eh_margin": tuple(n / 20 for n in range(9))}),
        (
            "focal-infonce",
            (U,),
            {"temperature": (0.03, 0.05, 0.07, 0.1), "hardness_m": (0.1, 0.2, 0.3, 0.4)},
        ),
    ],
)
@pytest.mark.parametrize("backbone", [BB, RB])
def test_a_search_has_the_grid_that_the_paper_prints(
    name: str, settings: tuple[str, ...], grid: dict[str, tuple[float, ...]], backbone: str
) -> None:
    for setting in settings:
        run = planned(name, backbone, setting)
        space = space_of(
            run.plugin.folder,
            run.method,
            setting=setting,
            backbone=backbone,
            variant=run.variant,
            recipe=run.recipe,
            places=(),
        )
        found = {axis.key: axis.values for axis in space}
        assert {key: found[key] for key in grid} == grid
