"""Only a printed recipe has the printed number, and a search has the grid that the paper prints.

The values of the papers' tables: tests/promises/test_train_plans.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.base.errors import BenchError
from bench.data.sets import DataFolder, Later
from bench.method.config import RunConfig
from bench.method.plugins import discover
from bench.run.plan import plan_configs
from bench.run.planned import PlannedRun
from bench.run.search.space import space_of

REGISTRY = discover()
BB = "bert-base-uncased"
BL = "bert-large-uncased"
RB = "roberta-base"
RL = "roberta-large"
U, S = "unsupervised", "supervised"


def planned(method: str, backbone: str, setting: str | None = None, **values: Any) -> PlannedRun:
    """The first run of ``bench run --method METHOD --backbone BACKBONE``, planned without any data
    or weights.
    """
    request = RunConfig(methods=(method,), backbones=(backbone,), setting=setting, **values)
    return plan_configs([request], REGISTRY, DataFolder(None, fetcher=Later()))[0]


@pytest.mark.nightly
def test_a_command_without_a_setting_never_takes_one_that_the_paper_does_not_print() -> None:
    """If several settings have a recipe on a backbone and only some have a printed number, it is
    one of those.
    """
    for name in REGISTRY:
        for backbone in (BB, BL, RB, RL):
            try:
                bare = planned(name, backbone)
                settings = REGISTRY[name].cls.settings
                printed = [s for s in settings if planned(name, backbone, s).expect]
            except BenchError:  # it needs a file or another run
                continue
            assert bare.setting == printed[0] if printed else bare.expect is None, (name, backbone)


def test_only_the_printed_recipe_has_the_printed_number(tmp_path: Any) -> None:
    text = tmp_path / "wiki1m_for_simcse.txt"
    text.write_text("a man plays\nthe dog runs\n")
    for values, printed in (
        ({}, 76.25),
        ({"overrides": {"temperature": "0.05"}}, 76.25),
        ({"overrides": {"temperature": "0.2"}}, None),
        ({"overrides": {"max_steps": "10"}}, None),
        ({"corpus": "builtin"}, None),
        ({"corpus": str(text)}, None),
    ):
        expect = planned("simcse", BB, **values).expect  # type: ignore[arg-type]
        assert (expect and expect["value"]) == printed, values
    assert planned("simcse", "builtin").expect is None


RATES, MARGINS = (5e-3, 1e-2, 3e-2), tuple(n / 20 for n in range(9))
GRIDS = {
    ("promcse", U, S): {
        "learning_rate": RATES,
        "batch_size": (256, 512),
        "prompt_length": (10, 12, 14, 16),
    },
    ("dcpcse", U, S): {"learning_rate": RATES, "batch_size": (64, 128, 256, 512)},
    ("promcse+eh", S): {"eh_margin": MARGINS},
    ("simcse+eh", S): {"eh_margin": MARGINS},
    ("focal-infonce", U): {
        "temperature": (0.03, 0.05, 0.07, 0.1),
        "hardness_m": (0.1, 0.2, 0.3, 0.4),
    },
}


@pytest.mark.parametrize(("name", "grid"), GRIDS.items())
def test_a_search_has_the_grid_that_the_paper_prints(name, grid):
    for setting in name[1:]:
        run = planned(name[0], BB, setting)
        about: Any = {"setting": setting, "backbone": BB, "variant": run.variant}
        space = space_of(run.plugin, run.recipe, **about)
        found = {key: axis.values for key, axis in space.items()}
        assert {key: found[key] for key in grid} == grid
