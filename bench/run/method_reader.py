"""What a method says of itself, read from its source: nothing of it is imported or run, so neither torch nor the method is needed.

For pages, which are made from records and must not depend on what a plugin does when it is loaded. What can only be known by
running the source (a summary that is computed, a variant made in a loop) is left out.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from bench.base.errors import BenchError
from bench.method import Value
from bench.run import recipe_file
from bench.run.recipe_file import RecipeFile

GROUP = "bench.methods"  # of the entry points; bench.run.plugins loads what this only reads
BUILT_IN = "sentence-bench"  # the distribution of this package's methods
UNKNOWN = object()  # an attribute that only running the source would tell
LONGEST = 2_000_000  # bytes of a source file that is read


@dataclass(frozen=True, kw_only=True)
class MethodDescription:
    """A method's own words. A text is empty where the source has none, or none that can be read without running it."""

    name: str
    package: str = ""  # the distribution that registers it
    version: str = ""
    summary: str = ""
    paper: str = ""
    settings: tuple[str, ...] = ()
    trains: str = ""
    about: str = ""  # docstring of the class, or else of its module
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)  # its own recipe keys
    optional: Mapping[str, Any] = field(
        default_factory=dict
    )  # those that a recipe has only where they are given
    fitted: str | None = None
    whole: bool = False  # settings, variants, recipe keys and fitted are all that running the source would tell
    file: RecipeFile = RecipeFile()  # recipes, disagreements, and what the papers' tables call it


@cache
def method_description(name: str) -> MethodDescription | None:
    """Of the installed method of that name; None where none is installed, or its source cannot be read."""
    for point in _points():
        source = _source(point.module)
        if source is None:
            continue
        folder, module = source
        described = next(
            (
                _description(entry, module, folder)
                for entry in _named_by(point, module)
                if entry.get("name") == name
            ),
            None,
        )
        if described is not None:
            package, version = (point.dist.name, point.dist.version) if point.dist else ("", "")
            return replace(described, package=package, version=version, file=_recipes(folder, name))
    return None


@dataclass(frozen=True)
class MethodDescriptions:
    """The methods that can be read, without package and recipe file (which take longer). ``whole``: running the sources would tell
    of no others."""

    methods: Mapping[str, MethodDescription]
    whole: bool


def method_descriptions(files: Sequence[Path] = ()) -> MethodDescriptions:
    """Every installed method and those of the plugin ``files``, without names that two of them have: importing refuses those."""
    methods: dict[str, MethodDescription] = {}
    whole, twice = True, set[str]()
    for point in _points():
        source = _source(point.module)
        if source is None:
            whole = False
            continue
        folder, module = source
        whole = (
            whole
            and is_plain(module)
            and all(entry.get("name") is not UNKNOWN for entry in _classes(module))
        )
        for row in _named_by(point, module):
            if isinstance(row.get("name"), str):
                methods.setdefault(row["name"], _description(row, module, folder))
    for file in files:
        try:
            module = ast.parse(file.read_bytes())
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            whole = False  # importing it tells what is wrong with it
            continue
        own = {
            entry["name"]: _description(entry, module, file.parent)
            for entry in _classes(module)
            if isinstance(entry.get("name"), str)
        }
        twice |= own.keys() & methods.keys()
        methods |= own
        whole = whole and is_plain(module) and bool(own)
    return MethodDescriptions(
        {name: method for name, method in methods.items() if name not in twice}, whole and not twice
    )


def _named_by(point: importlib.metadata.EntryPoint, module: ast.Module) -> Iterator[dict[str, Any]]:
    """The classes of a module that an entry point names: one, or all of them."""
    return (entry for entry in _classes(module) if point.attr in (None, "", entry["class"]))


PLAIN = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign, ast.Pass)


def is_plain(module: ast.Module) -> bool:
    """Does the source show every class that running it makes, and their attributes? Not where something else than assignments,
    classes and functions stands at its top or in a class, or a class is made by a call or changed by a decorator."""
    functions = {
        statement.name for statement in module.body if isinstance(statement, ast.FunctionDef)
    } | {"type", "setattr"}

    def plain(one: ast.stmt, inside: bool) -> bool:
        if isinstance(one, ast.ClassDef):
            return (
                not one.decorator_list
                and not one.keywords
                and all(plain(part, True) for part in one.body)
                or not _named(one)
            )
        if isinstance(one, ast.Assign):
            names = all(isinstance(target, ast.Name | ast.Tuple) for target in one.targets)
            calls = (node.func for node in ast.walk(one.value) if isinstance(node, ast.Call))
            return names and (
                inside
                or not any(isinstance(func, ast.Name) and func.id in functions for func in calls)
            )
        typing = isinstance(one, ast.If) and "TYPE_CHECKING" in ast.unparse(one.test)
        return (
            typing
            or isinstance(one, PLAIN)
            or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        )

    return all(plain(statement, False) for statement in module.body)


def _named(definition: ast.ClassDef) -> bool:
    """Could it be a method: has it a name, or a decorator that may give it one?"""
    return bool(definition.bases) and (
        bool(definition.decorator_list)
        or any(name == "name" for part in definition.body for name, _ in _assigned(part))
    )


@cache
def _points() -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(entry_points())  # reads what is installed: milliseconds each time


def entry_points() -> list[importlib.metadata.EntryPoint]:
    """Those that register methods, this package's first: of several methods of one name, the first is the one."""
    points = importlib.metadata.entry_points(group=GROUP)
    return sorted(points, key=lambda point: (distribution(point) != BUILT_IN, distribution(point)))


def distribution(point: importlib.metadata.EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def _description(
    definition: Mapping[str, Any], module: ast.Module, folder: Path
) -> MethodDescription:
    def literal(key: str, kind: type, otherwise: Any) -> Any:
        value = definition.get(key)
        return value if isinstance(value, kind) else otherwise

    kinds = {"variants": dict, "settings": tuple, "defaults": dict, "optional": dict, "fitted": str}
    readable = all(
        isinstance(definition[key], kind)
        for key, kind in kinds.items()
        if definition.get(key) is not None
    )
    contract = {
        alias.asname or alias.name
        for node in module.body
        if isinstance(node, ast.ImportFrom) and node.module == "bench.method"
        for alias in node.names
        if alias.name in ("Method", "TorchMethod")
    }
    return MethodDescription(
        name=definition["name"],
        summary=literal("summary", str, ""),
        paper=literal("paper", str, ""),
        trains=literal("trains", str, ""),
        settings=("none",)
        if definition.get("settings") is None
        else literal("settings", tuple, ()),  # as Method has it
        about=definition["doc"] or inspect.cleandoc(ast.get_docstring(module) or ""),
        variants=_with_file_variants(
            {
                name: changes
                for name, changes in literal("variants", dict, {}).items()
                if isinstance(changes, dict)
            },
            folder,
            definition["name"],
        ),
        defaults=literal("defaults", dict, {}),
        optional=literal("optional", dict, {}),
        fitted=literal("fitted", str, None),
        whole=readable and definition["bases"] <= contract and is_plain(module),
    )


def _with_file_variants(
    declared: Mapping[str, Mapping[str, Any]], folder: Path, name: str
) -> Mapping[str, Mapping[str, Any]]:
    try:
        of_all = recipe_file.with_file_variants(declared, folder, name)
    except BenchError:
        return declared
    return {
        variant: {key: v.value if isinstance(v, Value) else v for key, v in values.items()}
        for variant, values in of_all.items()
    }


def _recipes(folder: Path, name: str) -> RecipeFile:
    try:
        return recipe_file.read(folder, name)
    except BenchError:
        return RecipeFile()


@cache
def _source(module: str) -> tuple[Path, ast.Module] | None:
    """The folder and the parsed source of a module, found without importing it or a package above it."""
    top, *inner = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        for i in range(len(inner)):
            if spec is None or spec.submodule_search_locations is None:
                return None
            spec = PathFinder.find_spec(
                ".".join((top, *inner[: i + 1])), list(spec.submodule_search_locations)
            )
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return None
        file = Path(spec.origin)
        if file.stat().st_size > LONGEST:
            return None
        return file.parent, ast.parse(file.read_bytes())
    except (
        ImportError,
        OSError,
        ValueError,
        SyntaxError,
        RecursionError,
        MemoryError,
    ):  # somebody else's file
        return None


def _classes(module: ast.Module) -> Iterator[dict[str, Any]]:
    """The literal attributes of each class, those of a base in the same file included; "class" is its name, "doc" its own words."""
    known = _attributes(module, {})
    classes: dict[str, dict[str, Any]] = {}
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            bases = [
                classes[base.id]
                for base in reversed(node.bases)
                if isinstance(base, ast.Name) and base.id in classes
            ]
            inherited = {
                key: value for base in bases for key, value in base.items() if key != "name"
            }
            others = {
                ast.unparse(base)
                for base in node.bases
                if not isinstance(base, ast.Name) or base.id not in classes
            }
            of_class = {
                "class": node.name,
                "doc": ast.get_docstring(node) or "",
                "bases": others.union(*(base["bases"] for base in bases)),
            }
            classes[node.name] = inherited | _attributes(node, known) | of_class
            yield classes[node.name]


def _attributes(node: ast.Module | ast.ClassDef, known: Mapping[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for statement in node.body:
        for name, expression in _assigned(statement):
            try:
                attributes[name] = _value(expression, {**known, **attributes})
            except ValueError:
                attributes[name] = UNKNOWN  # rather than what a base or an earlier line said
    return attributes


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names of ``a = 1``, ``a: int = 1`` and ``a, b = 1, 2``, each with its expression."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return
    value = statement.value
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        if isinstance(target, ast.Name) and value is not None:
            yield target.id, value
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            yield from (
                (name.id, part)
                for name, part in zip(target.elts, value.elts, strict=True)
                if isinstance(name, ast.Name)
            )


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """A constant, a container of such, a name that stands for one, or ``Value(constant, ...)``. Raises ValueError for all else."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(element, known) for element in node.elts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {
            _value(key, known): _readable(expression, known)
            for key, expression in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        return -node.operand.value  # type: ignore[operator]
    if isinstance(node, ast.Name) and known.get(node.id, UNKNOWN) is not UNKNOWN:
        return known[node.id]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Value"
        and node.args
    ):
        return _value(node.args[0], known)
    raise ValueError("known when it runs")


def _readable(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value, or the source itself: a variant's change is told even where its value is computed."""
    try:
        return _value(node, known)
    except ValueError:
        return ast.unparse(node)
