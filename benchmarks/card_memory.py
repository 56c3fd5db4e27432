"""Memory of a training: what ``bench run --dry-run`` promises, and what is allocated."""

from __future__ import annotations

import torch
from card_models import Case, Place, config_folder, methods_of
from card_steps import (
    LENGTH,
    Found,
    Training,
    default_precision,
    free_memory,
    full_rows,
    ready_method,
)

OFF = 0.10
"""How far a promise may be off."""
STEPS = 4


def memory(place: Place, model: str, rows: int) -> Found:
    """Compare the promised memory with the most that was allocated and reserved in four steps."""
    batch = place.size(rows, 4)
    promised = promised_bytes(place, model, batch)
    allocated, reserved = used_bytes(place, model, batch)
    detail = {"promised": promised, "allocated": allocated, "reserved": reserved, "rows": batch}
    if allocated is None or reserved is None:
        total = torch.cuda.get_device_properties(0).total_memory
        value = f"does not fit; {promised / 2**30:.1f} GiB promised"
        return Found(value, promised > 0.9 * total, "", detail)
    value = (
        f"{promised / 2**30:.2f} GiB promised, {allocated / 2**30:.2f} allocated "
        f"(ratio {allocated / promised:.2f}), {reserved / 2**30:.2f} reserved"
    )
    good = abs(allocated / promised - 1) <= OFF if place.on_gpu else None
    return Found(value, good, "allocated within 10 % of promised", detail)


def promised_bytes(place: Place, model: str, batch: int) -> int:
    """Return the bytes of a training of SimCSE, as ``bench run --dry-run`` estimates them."""
    from bench.backbones import Reference
    from bench.data.corpora import open_corpus_file
    from bench.run.estimates import memory_of, shape_of
    from bench.run.planned import PlannedRun
    from bench.run.plugins import Plugin
    from bench.run.recipes import merge_recipe

    case = Case(methods_of("simcse")[0], "unsupervised", "")
    values = {"batch_size": str(batch), "max_seq_length": str(LENGTH), "max_steps": "1000"}
    run = PlannedRun(
        plugin=Plugin("simcse", case.cls, "checkout", "", ""),
        variant="",
        setting=case.setting,
        backbone=Reference(name=model, revision="random", path=config_folder(model, place)),
        seed=1,
        recipe=merge_recipe(case.cls, None, "", values, trained=True),
        corpus=open_corpus_file("builtin"),
        tasks=(),
        task_data=(),
        dev=None,
        text="tokenised",
        precision=default_precision(place),
        fingerprint="",
    )
    shape = shape_of(run)
    assert shape is not None
    return memory_of(run, shape, place.device)


def used_bytes(place: Place, model: str, batch: int) -> tuple[int | None, int | None]:
    """Return the most that was (allocated, reserved) beyond what this process held before.

    On a CPU both are the process's resident memory. (None, None): the training does not fit.
    """
    from bench.base.devices import peak_memory_bytes, reset_peak_memory

    free_memory(place)
    held, kept = 0, 0
    if place.on_gpu:
        held, kept = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    reset_peak_memory(place.device)
    training = None
    try:
        method = ready_method(place, "simcse", model, batch)
        training = Training(method, full_rows(STEPS * batch))
        training.steps(STEPS)
        place.wait()
        allocated = peak_memory_bytes(place.device) - held
        reserved = torch.cuda.max_memory_reserved() - kept if place.on_gpu else allocated
        return allocated, reserved
    except torch.OutOfMemoryError:
        return None, None
    finally:
        if training is not None:
            training.close()
        del training
        free_memory(place)
