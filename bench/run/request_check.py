"""What is wrong with the words of a command alone, told before torch is loaded, which takes seconds.

The source of a method is read for its names, not run (:mod:`bench.run.method_reader`). What only running it would tell is left to
:func:`bench.run.plan.make`, which checks everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.backbones import resolve
from bench.base.errors import UnknownName
from bench.run.corpus_choice import check_asked
from bench.run.method_reader import Known, Stated, known
from bench.run.plan import Request, check_named, learns
from bench.run.plugins import check_file
from bench.run.recipes import NUMBERS, TRAINING, check_overrides, check_variant, parse


def check_methods(names: Sequence[str], files: Sequence[Path] = ()) -> Known:
    """What can be read of the methods. Raises UnknownName for a name that neither an installed method nor a plugin file has,
    BenchError where a plugin file is missing."""
    for file in files:
        check_file(file)
    found = known(files)
    for name in names:
        if found.whole and name not in found.methods:
            raise UnknownName("method", name, found.methods, hint="bench methods")
    return found


def check_request(request: Request, files: Sequence[Path] = ()) -> None:
    """Raises BenchError for a method, suite, variant, setting, recipe key, number, corpus file or backbone that cannot be."""
    check_named(request)
    found = check_methods(request.methods, files)
    for name in request.backbones:
        if not Path(name).expanduser().is_dir():  # a folder's weights are hashed, which may take long
            resolve(name)
    methods = [found.methods[name] for name in request.methods if name in found.methods]
    if len(methods) < len(request.methods) or not all(method.whole for method in methods):
        return
    for method in methods:
        if request.setting not in (None, *method.settings):
            raise UnknownName("setting", str(request.setting), method.settings, f"of {method.name}")
        check_variant(method, request.variant)
    trained = any(learns(method, setting) for method in methods for setting in method.settings)
    check_overrides(request.overrides, methods, trained)
    for key, text in request.overrides.items():
        _check_number(key, text, methods)
    if trained and request.corpus is not None:
        check_asked(request.corpus)


def _check_number(key: str, text: str, methods: Sequence[Stated]) -> None:
    """Raises BenchError where a number, or true or false, is meant and ``text`` is none. A recipe may change a value, not its kind."""
    if key == "budget" or (key in NUMBERS and key in TRAINING):
        parse(key, text, TRAINING[key].value if key in TRAINING else None)
        return
    for method in methods:
        default = method.defaults.get(key)
        if isinstance(default, bool | float) and text.lower() not in ("", "none", "null"):
            parse(key, text, default)
