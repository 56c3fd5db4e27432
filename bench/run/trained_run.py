"""A finished run as a method that encodes: its plugin, its recipe, its backbone and its checkpoint, put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.backbones import Reference, resolve_recorded
from bench.base.errors import BenchError, NotAModel
from bench.method import Context, Method, Recipe, Reporter, SilentReporter, Value
from bench.run.plan import learns
from bench.run.plugins import Plugin, discover
from bench.runs import RunRecord, RunsFolder
from bench.runs.store import AGAIN, AGAIN_FRESH, CHECKPOINT, checkpoint_problem, read_record


@dataclass(frozen=True)
class TrainedRun:
    """What :func:`find_run` found: enough to say what it is, nothing of it loaded yet."""

    record: RunRecord
    folder: Path
    plugin: Plugin
    recipe: Recipe
    notes: tuple[
        str, ...
    ] = ()  # what a user should know, such as that the method's code has changed since

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT


def not_kept(record: RunRecord) -> NotAModel | None:
    """Why the model of a run cannot be had from its folder; None where it can, or where nothing speaks against it."""
    kind = record.provenance.backbone.model.get("kind")
    if kind not in ("object", "function", "vectors", "server") or not record.model_name:
        return None
    return NotAModel(
        f"{record.run_id} scored a model of kind '{kind}': its predictions are stored, the model is not",
        "bench verify computes its scores again",
    )


def find_run(reference: str, runs: RunsFolder, plugins: Sequence[Path] = ()) -> TrainedRun:
    """The run that an id, the beginning of one, or a path means.

    ``plugins`` are files given with --plugin. Raises UnknownName for no such run or method, RecordDamaged, and NotAModel
    where the run has no finished checkpoint.
    """
    file = runs.record_file(reference)
    record, folder = read_record(file), file.parent
    if (gone := not_kept(record)) is not None:
        raise gone
    made_by, registry = record.provenance.plugin, discover(plugins)
    plugin = registry.of_run(record.run_id, record.method, made_by)
    trains = learns(plugin.cls, record.setting)
    problem = checkpoint_problem(record, folder)
    if trains and record.training is None:
        problem = f"it has no finished checkpoint (status {record.status})"
    if problem is not None:
        hint = AGAIN_FRESH if trains and record.training is not None else AGAIN
        raise NotAModel(f"{record.run_id}: {problem}", hint)
    recipe = {
        key: Value(value.value, value.source, value.note) for key, value in record.recipe.items()
    }
    notes = registry.warnings
    if made_by.sha256 not in (None, plugin.sha256):
        text = (
            f"the code of {plugin.name} is not the one that made this run; its vectors may differ"
        )
        notes += (text,)
    return TrainedRun(record, folder, plugin, Recipe(recipe), notes)


def backbone_of(record: RunRecord, plugin: Plugin) -> Reference:
    """The backbone that a run was made with; of the hub, the very commit. Raises NotAModel where a folder has changed since."""
    known = record.provenance.backbone
    name, revision = known.name or record.backbone, str(known.revision)
    if plugin.cls.own_backbone is not None:
        return Reference(name, revision, None)
    reference = resolve_recorded(name, known.revision)
    if reference.path is not None and known.revision not in (None, reference.revision):
        raise NotAModel(
            f"{record.run_id} was made with {name} revision {revision[:12]}; here it is {reference.revision[:12]}",
            "put that revision of the backbone in its place",
        )
    return reference


def load_run(
    run: TrainedRun,
    *,
    device: str = "cpu",
    offline: bool = False,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Method:
    """The run's method, in evaluation mode on ``device``, ready to ``encode``. Nothing is written to the run's folder.

    Raises NotAModel where the backbone cannot be had, BenchError where checkpoint, backbone and recipe do not fit.
    """
    from bench.method.torch_method import build_method

    record, cls = run.record, run.plugin.cls
    context = Context(
        device=device,
        seed=record.seed or 0,
        folder=run.folder,
        offline=offline,
        reporter=reporter or SilentReporter(),
        should_stop=should_stop,
    )
    backbone = backbone_of(record, run.plugin)
    try:
        method = build_method(
            cls, backbone, run.recipe, context, learns=learns(cls, record.setting)
        )
    except (KeyError, AttributeError) as error:  # a recipe of an older version of the method
        if not set(cls.defaults) - set(run.recipe):
            raise
        text = f"{record.run_id}: its recipe lacks what {record.method} needs now: {error}"
        raise BenchError(text, "its command makes another run, with today's recipe") from error
    method.load(run.checkpoint)
    return method
