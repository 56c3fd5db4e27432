"""Who may know whom, read from the source; and what an import may pull in, seen in a fresh
process.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import bench
from bench import methods

BENCH, METHODS = Path(bench.__file__).parent, Path(methods.__file__).parent
HEAVY = ("torch", "transformers", "mteb", "sentence_transformers")


def modules(package: str, folder: Path) -> dict[str, Path]:
    """Find the modules below a folder, by the names that import them.

    In a wheel the methods are in bench/.
    """
    found = {}
    for path in sorted(folder.rglob("*.py")):
        if package == "bench" and path.is_relative_to(BENCH / "methods"):
            continue
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


def of_bench() -> dict[str, Path]:
    return modules("bench", BENCH)


def of_methods() -> dict[str, Path]:
    return modules("bench.methods", METHODS)


ALL = of_bench() | of_methods()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path, *, at_import_only: bool = False) -> set[str]:
    """Return the imports of a file as "a.b" and, for ``from a import b``, as "a.b" too, also those for
    type checkers; ``at_import_only`` leaves these and those of functions out.
    """
    found: set[str] = set()

    def walk(node: ast.AST) -> None:
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if at_import_only and for_types:
            return
        if at_import_only and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            walk(child)

    walk(tree_of(path))
    return found


def reaches(found: set[str], *packages: str) -> set[str]:
    return {name for name in found if any(name == p or name.startswith(p + ".") for p in packages)}


def files_of(package: str) -> dict[str, Path]:
    found = {
        name: path
        for name, path in ALL.items()
        if name == package or name.startswith(package + ".")
    }
    assert found, f"no module {package}"
    return found


@pytest.mark.slow
def test_bench_never_imports_methods() -> None:
    assert {
        name: hit
        for name, path in of_bench().items()
        if (hit := reaches(imports(path), "bench.methods"))
    } == {}


def test_bench_names_no_method_in_its_code() -> None:
    """Neither as an import nor as a special case: a string that equals a method's name is allowed
    only in an example for the user.
    """
    from bench.method.plugins import discover

    names = {n for n in discover() if n not in {"cls"}}
    for name, path in of_bench().items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Compare):
                strings = {
                    c.value
                    for c in ast.walk(node)
                    if isinstance(c, ast.Constant) and isinstance(c.value, str)
                }
                assert not strings & names, (
                    f"{name} line {node.lineno} treats {strings & names} specially"
                )


def test_methods_know_the_contract_and_each_others_parts_only() -> None:
    """And what the contract stands on: a stranger's file needs ``bench.method`` alone."""
    for name, path in of_methods().items():
        strange = {
            hit
            for hit in reaches(imports(path), "bench")
            if not reaches({hit}, "bench.method", "bench.methods", "bench.backbones", "bench.base")
        }
        assert strange == set(), name


def keys_of_methods() -> set[str]:
    """Recipe keys that methods define and the harness does not."""
    from bench.method.plugins import discover
    from bench.method.recipe_defaults import ON_REQUEST, TRAINING
    from bench.run.external.objects import ObjectModel

    registry = discover()
    keys = set()
    for name in registry:
        keys |= {*registry[name].cls.defaults, *registry[name].cls.optional}
    return keys - {*TRAINING, *ON_REQUEST, *ObjectModel.optional}


def is_recipe(node: ast.AST) -> bool:
    return ast.unparse(node).split(".")[-1] == "recipe"


def keys_read(tree: ast.AST) -> set[str]:
    """Recipe keys that a file reads: recipe.get("key"), recipe["key"], recipe.key, "key" in
    recipe.
    """
    found: set[ast.AST | str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_recipe(node.value):
            found.add(node.attr)
        elif isinstance(node, ast.Subscript) and is_recipe(node.value):
            found.add(node.slice)
        elif isinstance(node, ast.Compare) and is_recipe(node.comparators[0]):
            found.add(node.left)
        elif (
            isinstance(node, ast.Call)
            and node.args
            and ast.unparse(node.func).endswith("recipe.get")
        ):
            found.add(node.args[0])
    keys = {one.value if isinstance(one, ast.Constant) else one for one in found}
    return {key for key in keys if isinstance(key, str)}


@pytest.mark.parametrize(
    "code",
    [
        "x = run.recipe.get('mlm')",
        "x = recipe['mlm']",
        "x = self.recipe.mlm",
        "if 'mlm' in run.recipe: pass",
    ],
)
def test_every_way_to_read_a_recipe_key_is_seen(code: str) -> None:
    assert "mlm" in keys_read(ast.parse(code))


def test_bench_reads_no_recipe_key_of_a_method() -> None:
    """Identity asks the class; the one key with a meaning for the harness is FAITHFUL, which is in
    the contract.
    """
    keys = keys_of_methods()
    assert {"mlm", "prompt_length", "freeze_lm_head", "faithful", "temperature"} <= keys
    read = {}
    for name, path in of_bench().items():
        if hits := keys_read(tree_of(path)) & keys:
            read[name] = hits
    assert read == {}


ROOMS = (
    "base",
    "papers",
    "data",
    "backbones",
    "records",
    "score",
    "method",
    "compare",
    "training",
    "run",
    "board",
    "export",
    "library",
    "cli",
)
"""The folders of ``bench/``, from the ground up (docs/architecture.md): each imports only from
those before it.
"""
LIGHT = (
    "bench.base",
    "bench.papers",
    "bench.data",
    "bench.records",
    "bench.compare",
    "bench.board",
    "bench.score.encoding",
    "bench.run.plan",
    "bench.method.recipes",
    "bench.run.paper_plan",
)
"""Parts that never need a model: none of them imports what is heavy, not even when it is called."""
OTHERS_FILES = {"bench.base.devices"}  # about what torch can do here
MAY_NOT = {
    "bench.data.corpora": ("bench.data.sets",),
    "bench.data.sets": ("bench.data.corpora",),
    "bench.method": ("bench.data.sets", "bench.records.store", "bench.score.suites"),
    "bench.training": (
        "bench.data.sets",
        "bench.records.record",
        "bench.score.suites",
        "bench.score.metrics",
    ),
    "bench.run.plan": ("bench.run.execute", "bench.training"),
    "bench.board.verify": ("bench.training",),
    "bench.run": ("click",),
    "bench.library": ("click",),
    "bench.cli": ("bench.library",),
    "bench.board.pages": (
        "bench.run.plan",
        "bench.method.plugins",
        "bench.run.execute",
        "bench.training",
        "bench.backbones",
    ),
}
"""What a part could reach from where it stands, and is not to know of."""


def room(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def graph() -> dict[str, set[str]]:
    """Module -> the modules of bench that it imports, at whatever moment."""
    return {
        name: {hit for hit in imports(path) if hit in ALL and hit != name}
        for name, path in of_bench().items()
    }


def test_rooms_import_only_from_below() -> None:
    up = set()
    for name, hits in graph().items():
        for hit in hits:
            if room(name) not in ROOMS or room(hit) not in ROOMS:
                continue
            if ROOMS.index(room(hit)) > ROOMS.index(room(name)):
                up.add(f"{name} -> {hit}")
    assert up == set()


def test_no_two_files_import_each_other() -> None:
    """Nor three in a circle: what has nobody above it is taken away until nothing is left."""
    left = {
        name: {hit for hit in hits if not name.startswith(hit + ".")}
        for name, hits in graph().items()
    }
    while free := left.keys() - {hit for hits in left.values() for hit in hits}:
        left = {name: hits for name, hits in left.items() if name not in free}
    assert left == {}


def rooms_in_paths(tree: ast.AST) -> set[str]:
    """Rooms that a file reaches from its own place or by ``importlib.resources``, as it would a
    folder.
    """
    named: set[str] = set()
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.BinOp | ast.Call) else ""
        if "__file__" in text or "files(" in text:
            found = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
            named |= {str(one).removeprefix("bench.").split(".")[0] for one in found}
    return named & set(ROOMS)


def test_files_of_a_room_above_are_not_read() -> None:
    assert rooms_in_paths(ast.parse("Path(__file__).parents[1] / 'board' / 'given.json'")) == {
        "board"
    }
    up = set()
    for name, path in of_bench().items():
        if room(name) not in ROOMS:
            continue
        text = path.read_text(encoding="utf-8")
        if "__file__" not in text and "files(" not in text:
            continue
        for other in rooms_in_paths(tree_of(path)):
            if ROOMS.index(other) > ROOMS.index(room(name)):
                up.add(f"{name} -> {other}")
    assert up == set()


@pytest.mark.parametrize("package", LIGHT)
def test_light_parts_import_nothing_heavy(package: str) -> None:
    files = {name: path for name, path in files_of(package).items() if name not in OTHERS_FILES}
    assert {
        name: hit for name, path in files.items() if (hit := reaches(imports(path), *HEAVY))
    } == {}


@pytest.mark.parametrize("package", MAY_NOT)
def test_a_part_does_not_know_what_it_may_not_know(package: str) -> None:
    assert {
        name: hit
        for name, path in files_of(package).items()
        if (hit := reaches(imports(path), *MAY_NOT[package]))
    } == {}


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("bench.score.metrics", ("bench.score.influence", "bench.records.predictions")),
        ("bench.score.influence", ("bench.records.predictions",)),
        (
            "bench.compare.statistics",
            (
                *("bench.records.names", "bench.records.predictions", "bench.records.record"),
                *("bench.score.influence", "bench.score.suites"),
            ),
        ),
        ("bench.papers", ("bench.base.errors", "bench.base.findings")),
    ],
)
def test_numbers_in_numbers_out(package: str, allowed: tuple[str, ...]) -> None:
    """metrics, statistics and references import no other part of bench but the errors (statistics:
    what runs predicted, and the metric of a score), and no torch until they are called.
    """
    for name, path in files_of(package).items():
        found = imports(path)
        others = {
            hit
            for hit in reaches(found, "bench")
            if not reaches({hit}, "bench.base.errors", "bench.base.text", package, *allowed)
        } - {"bench"}
        assert others == set(), name
        assert reaches(imports(path, at_import_only=True), *HEAVY) == set(), name


TORCH_ONLY = (
    "bench.backbones.held_in",
    "bench.backbones.mlm_head",
    "bench.backbones.model",
    "bench.method.batch",
    "bench.method.building",
    "bench.method.features",
    "bench.method.optimizer",
    "bench.method.passes",
    "bench.method.ranks",
    "bench.method.torch_method",
    "bench.method.whole_texts",
    "bench.training",
    "bench.run.conformance",
    "bench.methods",
)


def test_only_the_torch_parts_import_torch_at_module_level() -> None:
    for name, path in ALL.items():
        if not reaches({name}, *TORCH_ONLY):
            assert reaches(imports(path, at_import_only=True), *HEAVY) == set(), name


def test_nothing_of_the_workplace_is_named() -> None:
    strange = re.compile(r"/work\b|\.\./shared|/root/|/tmp/")
    suffixes = {".py", ".toml", ".json", ".md", ".html", ".css"}
    files = [p for p in (*BENCH.rglob("*"), *METHODS.rglob("*")) if p.suffix in suffixes]
    found = {
        str(p.relative_to(BENCH.parent)): hits
        for p in files
        if p.name not in {"tokenizer.json", "vocab.txt"}
        and (hits := strange.findall(p.read_text(encoding="utf-8")))
    }
    allowed = {"bench/cli/demo.py": ["/tmp/"]}  # an example in the help
    assert {name: hits for name, hits in found.items() if allowed.get(name) != hits} == {}


LOADED = "import sys; print('\\n'.join(sorted({n.partition('.')[0] for n in sys.modules})))"


def loaded_by(code: str, tmp_path: Path) -> set[str]:
    """Top-level modules that are loaded after ``code``, in a process of its own, started in an
    empty folder.
    """
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def verb(*arguments: str) -> str:
    return f"""
import contextlib, io
from bench.cli import main
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
    try:
        main({list(arguments)!r}, standalone_mode=True)
    except SystemExit as end:
        assert end.code == 0, out.getvalue()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import bench", (*HEAVY, "numpy", "click")),
        ("import bench; bench.train, bench.evaluate, bench.compare_runs", ("click", "torch")),
        ("import bench.method", (*HEAVY, "numpy")),
        (verb("--help"), (*HEAVY, "numpy", "scipy", "rich", "jinja2")),
        (verb("run", "--help"), (*HEAVY, "scipy")),
        (verb("compare"), HEAVY),
    ],
    ids=["import bench", "bench.train", "import bench.method", "--help", "run --help", "compare"],
)
def test_modules_that_an_import_loads(
    code: str, forbidden: tuple[str, ...], tmp_path: Path
) -> None:
    if code == verb("compare"):
        from made_runs import made_run

        made_run(tmp_path / "runs", suites=("check",))
    assert loaded_by(code, tmp_path) & set(forbidden) == set()
