"""Suites: groups of tasks, and how each task is scored.

A suite is a module that defines ``SUITE``. A suite of your own imports from here.
"""

from bench.score.metrics.metric import Metric
from bench.score.suites.averages import average, name_average
from bench.score.suites.known import KnownTask, survey, survey_files
from bench.score.suites.registry import (
    OWN,
    SuitePlugin,
    check_suite_name,
    expand_suites,
    find_metric,
    find_task,
    split_suites,
    suite,
    suite_names,
    suite_plugin,
    use_files,
)
from bench.score.suites.rescoring import GIVEN, reduce_predictions, rescore
from bench.score.suites.task import (
    Arrays,
    LoadedData,
    LoadedTask,
    Part,
    RunPlace,
    Suite,
    Task,
    TaskResult,
    TaskScore,
    Vectors,
)
from bench.score.suites.vectors import (
    GOLD_IS_THE_CAUSE,
    check_variety,
    check_vectors,
    float32_vectors,
    scoring,
)

__all__ = [
    "GIVEN",
    "GOLD_IS_THE_CAUSE",
    "OWN",
    "Arrays",
    "KnownTask",
    "LoadedData",
    "LoadedTask",
    "Metric",
    "Part",
    "RunPlace",
    "Suite",
    "SuitePlugin",
    "Task",
    "TaskResult",
    "TaskScore",
    "Vectors",
    "average",
    "check_suite_name",
    "check_variety",
    "check_vectors",
    "expand_suites",
    "find_metric",
    "find_task",
    "float32_vectors",
    "name_average",
    "reduce_predictions",
    "rescore",
    "scoring",
    "split_suites",
    "suite",
    "suite_names",
    "suite_plugin",
    "survey",
    "survey_files",
    "use_files",
]
