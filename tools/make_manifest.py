"""Write the numbers of the manifests (rows, sizes, hashes) from a data folder.

    python tools/make_manifest.py DIR

The hand-written rest of every manifest (names, licences, sources, which files in which folder)
stays as it is. A set that is not in the folder is left alone and named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import sys
from pathlib import Path
from typing import Any

from bench.data.sets import ANY, DataFile, cells, lf, parse_manifest


def measure(places: dict[str, Path], file: dict[str, Any]) -> dict[str, Any]:
    """Return ``file`` with its numbers, from the folder of each form."""
    known = DataFile(
        **{
            "rows": 0,
            "forms": {},
            **{key: file[key] for key in file if key not in ("rows", "forms")},
        }
    )
    forms: dict[str, dict[str, Any]] = {}
    rows = 0
    filled = 0
    for form, place in places.items():
        path = place / known.path
        if known.packed:
            digest, rows = hashlib.sha256(), -known.header
            with lzma.open(path, "rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
                    rows += block.count(b"\n")
            forms[form] = {"sha256": digest.hexdigest(), "bytes": path.stat().st_size}
            continue
        data = path.read_bytes()
        forms[form] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        if lf(data) != data:
            forms[form]["sha256_lf"] = hashlib.sha256(lf(data)).hexdigest()
        table = cells(data.decode(known.encoding), known)
        rows, filled = len(table), sum(any(cell.strip() for cell in row) for row in table)
    if len({form["sha256"] for form in forms.values()}) == 1:
        forms = {ANY: next(iter(forms.values()))}
    measured = {key: value for key, value in file.items() if key not in ("rows", "filled", "forms")}
    measured["rows"] = rows
    if filled and filled != rows:
        measured["filled"] = filled
    return {**measured, "forms": forms}


def update(manifest: dict[str, Any], root: Path, package: Path, where: str) -> list[str]:
    """Measure every set of a manifest in place, and return the names of those that are not in the
    folder.
    """
    absent = []
    for raw in manifest["sets"]:
        merged = {**manifest.get("common", {}), **raw}
        base = package if merged["kind"] == "built-in" else root
        places = {form: base / home for form, home in merged["homes"].items()}
        if not all(
            (place / file["path"]).is_file() for place in places.values() for file in raw["files"]
        ):
            absent.append(raw["name"])
            continue
        raw["files"] = [measure(places, file) for file in raw["files"]]
    parse_manifest(manifest)
    return absent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tools/make_manifest.py", description=__doc__)
    parser.add_argument("folder", type=Path, help="data folder, as --data of bench run takes it")
    root: Path = parser.parse_args(arguments).folder
    package = Path(__file__).parents[1] / "bench"
    for path in sorted((package / "data" / "sets" / "manifests").glob("*.json")):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        absent = update(manifest, root, package, path.name)
        path.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        left = f"; not found: {', '.join(absent)}" if absent else ""
        print(f"{path.name}: {len(manifest['sets']) - len(absent)} sets measured{left}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
