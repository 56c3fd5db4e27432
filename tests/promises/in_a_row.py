"""Many commands of bench in one process: those that end at once take some hundredths of a second.

The installed command is what the entry point ``bench`` names, as the process ``bench`` runs it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from started import Done, python

SCRIPT = """
import json, os, sys, tempfile
from importlib.metadata import entry_points
from pathlib import Path

(command,) = entry_points(group="console_scripts", name="bench")
main, screen, ends = command.load(), [os.dup(1), os.dup(2)], []

def here():
    # __pycache__ is Python's own, and changes the time of its folder
    return sorted((str(path), path.is_dir() or path.lstat().st_mtime_ns)
                  for path in Path().rglob("*") if "__pycache__" not in path.parts)

before = here()
for words in json.loads(Path(sys.argv[1]).read_text()):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
        sys.argv, code = ["bench", *words], 0
        try:
            code = main()
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            print(f"Traceback: {error!r}", file=sys.stderr)
            code = 1
        sys.stdout.flush(), sys.stderr.flush()
        os.dup2(screen[0], 1), os.dup2(screen[1], 2)
        said = [file.seek(0) or file.read().decode() for file in (out, err)]
    now = here()
    ends.append([words, code or 0, *said, now == before])
    before = now
print(json.dumps(ends))
"""


@dataclass(frozen=True)
class End(Done):
    """A command that has ended, and whether its folder is as it was."""

    unchanged: bool


def in_a_row(
    commands: Sequence[Sequence[str | Path]],
    place: Path,
    *,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
) -> list[End]:
    """Run commands of bench one after the other in a folder, in one process."""
    listed = place.parent / f"{place.name}-commands.json"
    listed.write_text(json.dumps([[str(word) for word in words] for words in commands]))
    done = python(SCRIPT, listed, cwd=place, seconds=seconds, env=env)
    return [End(tuple(words), *rest) for words, *rest in done.json]
