"""The hash of a syntax tree: comments, docstrings and layout do not move it, code does, and every
Python gives the same one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bench
from bench.base.syntax import hash_tree, parse_source, reads_docstrings

EXAMPLE = '''
from __future__ import annotations
import math, os.path as place
from dataclasses import dataclass, field

@dataclass(frozen=True, kw_only=True)
class Loss(dict[str, int]):
    """A docstring."""

    rate: float = 1e-05
    names: list[str] = field(default_factory=lambda: ["a", *"bc"])

    async def of(self, x, /, y=None, *rest: int, z: int = -1, **more) -> str:
        global TOTAL
        TOTAL += (n := len(rest))
        if x in {1, 2} and not y or z is not None:
            pass
        elif x > 10**30 <= 0x10_000:
            return f"{x!r:>{z}} {y:.2f}" "tail \\N{GREEK SMALL LETTER ALPHA}" f"{x=}{z:}"
        try:
            async with open(x) as file, self:
                return [a async for a in file if a for b in a]
        except* (ValueError, KeyError) as error:
            raise RuntimeError(b"\\xff", 1j, ..., True) from error
        match x:
            case [1, {"k": v, **rest_of}, str(), Loss(rate=0.5) | None]:
                return v[1:2, ::3]
            case _:
                return {**more, "k": 1}
'''


def hashed(source: str, with_docstrings: bool = False) -> str:
    tree = parse_source(source.encode())
    assert tree is not None
    return hash_tree(tree, with_docstrings)


def test_every_python_gives_this_hash() -> None:
    """The value was computed by 3.11, 3.12 and 3.13; CI runs this test on each."""
    assert hashed(EXAMPLE) == "4f3a62a8c0e742c8a7c76346d7ffb98e65efa052356c8ecc99f6f5226573a2e4"


FOLDERS = [["methods"], pytest.param(["bench", "tests"], marks=pytest.mark.nightly)]


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11.7", "3.12.1", "3.13.0"])
@pytest.mark.parametrize("folders", FOLDERS, ids=",".join)
def test_the_other_pythons_of_this_machine_agree(folders: list[str], version: str) -> None:
    python = Path.home() / ".pyenv" / "versions" / version / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no Python {version} here")
    code = f"""
import hashlib, sys
from pathlib import Path
from bench.base.syntax import hash_tree, parse_source
digest = hashlib.sha256()
for folder in {folders}:
    for path in sorted(Path(folder).rglob("*.py")):
        digest.update(hash_tree(parse_source(path.read_bytes())).encode())
print(digest.hexdigest())
"""
    root = Path(bench.__file__).parents[1]
    answers = {
        subprocess.run(
            [one, "-c", code], cwd=root, capture_output=True, text=True, check=True
        ).stdout
        for one in (sys.executable, str(python))
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    "same",
    [
        "x = 1\ndef f(a, b):\n    return (a + b)  # a word\n",
        "x=1\n\n\ndef f(\n    a,\n    b,\n):\n    '''Adds.'''\n    return a + \\\n        b\n",
        (
            '"""A module."""\n# a comment\nx = 1\n"""What x is."""\n'
            'def f(a, b):\n    "doc"\n    pass\n    return a+b\n'
        ),
        "\ufeffx = 1\r\ndef f(a, b):\r\n\treturn a + b\r\n",
    ],
)
def test_comments_docstrings_and_layout_do_not_count(same: str) -> None:
    assert hashed(same) == hashed("x = 1\ndef f(a, b):\n    return a + b\n")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = None", "x = ..."),
        ("x = 'a'", "x = b'a'"),
        ("x = f'{a}'", "x = f'{a!r}'"),
        ("x = f'{a:>2}'", "x = f'{a:>3}'"),
        ("x = f'{a}b'", "x = f'b{a}'"),
        ("x = a - b", "x = b - a"),
        ("x = a.b", "x = a.c"),
        ("x = [a]", "x = (a,)"),
        ("x = [1, 23]", "x = [12, 3]"),
        ("f(a, *b)", "f(*b, a)"),
        ("f(a=b)", "f(a, b)"),
        ("def f(a=1): return a", "def f(*, a=1): return a"),
        ("def f(a, /): return a", "def f(a): return a"),
        ("if a:\n    b\nc", "if a:\n    b\n    c"),
        ("if a:\n    b()\nelse:\n    pass", "if a:\n    pass\nelse:\n    b()"),
        ("for a in b:\n    c()", "while b:\n    c()"),
        ("from a import b", "from a import c as b"),
        ("from . import a", "from .. import a"),
        ("from a import x\nfrom b import x", "from b import x\nfrom a import x"),
        ("from a import *\nfrom b import *", "from b import *\nfrom a import *"),
        ("import a\nf()\nimport b", "import b\nf()\nimport a"),
        ("{**a, 'b': 1}", "{'b': 1, **a}"),
        ("@d\ndef f(): return 1", "def f(): return 1"),
        ("x: int = 1", "x: str = 1"),
        ("async def f(): return 1", "def f(): return 1"),
        ("x = -1", "x = +1"),
        ("x = '\ud800'.encode('utf-8', 'surrogatepass')", "x = '?'.encode()"),
    ],
)
def test_other_code_is_another_hash(one: str, other: str) -> None:
    def of(source: str) -> str:
        tree = parse_source(source.encode("utf-8", "surrogatepass"))
        return hash_tree(tree) if tree is not None else source

    assert of(one) != of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("import b\nimport a\n", "import a, b\n"),
        (
            "from m import (\n    c,\n    a,\n)\nfrom k import d\n",
            "from k import d\nfrom m import a\nfrom m import c\n",
        ),
        ("x = 'a' 'b'", "x = 'ab'"),
        ("x = u'a'", 'x = "a"'),
        ("x = 0x10", "x = 16"),
        ("x = 1_000.0", "x = 1e3"),
        ("x = f'a' 'b' f'{c}'", "x = f'ab{c}'"),
        ("x = f'{c:}'", "x = f'{c}'"),
        ("def f(): ...", "def f(): pass"),
        ("with (a as b, c): d()", "with a as b, c: d()"),
    ],
)
def test_two_ways_to_write_one_thing_are_one(one: str, other: str) -> None:
    assert hashed(one) == hashed(other)


def test_docstrings_count_if_the_code_reads_them() -> None:
    one, other = 'def f():\n    """A prompt."""\n', 'def f():\n    """Another."""\n'
    assert hashed(one) == hashed(other)
    assert hashed(one, with_docstrings=True) != hashed(other, with_docstrings=True)
    for reads in ("f.__doc__", "inspect.getdoc(f)", "getattr(f, '__doc__')"):
        tree = parse_source(reads.encode())
        assert tree is not None and reads_docstrings(tree), reads


def test_a_deep_tree_and_a_long_number_are_hashed() -> None:
    assert hashed("x = " + " + ".join(["a"] * 900)) != hashed("x = " + " + ".join(["a"] * 899))
    assert hashed("x = 0x" + "f" * 9000) != hashed("x = 0x" + "f" * 8999 + "e")


@pytest.mark.parametrize("broken", [b"x = (", b"\xff\xfe", b"x = 1\0"])
def test_text_that_is_no_python_has_no_tree(broken: bytes) -> None:
    assert parse_source(broken) is None
