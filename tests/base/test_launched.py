"""What a launcher's variables say of this process."""

import pytest

from bench.base.errors import BenchError
from bench.base.launched import NAMES, launched

AS_TORCHRUN = dict(zip(NAMES, ("1", "2", "1", "127.0.0.1", "29500"), strict=True))


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "LOCAL_RANK"])
def test_variable_that_is_no_number_is_named(name, monkeypatch):
    for key, value in (AS_TORCHRUN | {name: "first"}).items():
        monkeypatch.setenv(key, value)

    with pytest.raises(BenchError, match=f"{name} is 'first', not a number"):
        launched()


def test_process_that_torchrun_started(monkeypatch):
    for key, value in AS_TORCHRUN.items():
        monkeypatch.setenv(key, value)

    process = launched()

    assert (process.rank, process.count, process.place) == (1, 2, "127.0.0.1:29500")
