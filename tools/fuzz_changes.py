"""Random changes of a file's content."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

ODD = (
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1e308",
    b"9" * 400,
    b"9" * 5000,
    b"null",
    b"true",
    b'""',
    b"[]",
    b"{}",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\n",
    b"\r\n",
    b"\t",
    b'"',
    b"\\ud800",
    b"\\",
    b"[" * 3000,
    b'{"a":' * 3000,
    "\u202e".encode(),
    b"\x85",
    b"PK\x03\x04",
    b"../",
    b"\x93NUMPY",
)
"""Bytes that readers have stumbled over, or may."""
NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?")
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    2**64,
    1e308,
    "",
    "x",
    "../x",
    "\x00",
    [],
    {},
    [[]],
    {"a": {}},
    "2026-99-99",
)


def changed(draw: random.Random, content: bytes) -> bytes:
    """Change bytes: flip, replace, cut, repeat or insert some; or change values if it is JSON."""
    if content[:1] == b"{" and draw.random() < 0.5:
        return restructured(draw, content)
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        at = draw.randrange(len(data) + 1)
        length = draw.choice((1, 1, 2, 8, 64))
        kind = draw.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = draw.randrange(256)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length] * draw.choice((1, 2, 50))
        elif kind == 4:
            data[at:at] = draw.choice(ODD)
        elif kind == 5:
            del data[at:]
        elif numbers := list(itertools.islice(NUMBER.finditer(data), 40)):
            number = draw.choice(numbers)
            data[number.start() : number.end()] = draw.choice(ODD[:14])
    return bytes(data)


def restructured(draw: random.Random, content: bytes) -> bytes:
    """Change JSON: give a value another type, leave it out, or add one."""
    lines = content.split(b"\n") if content.count(b"\n{") else [content]
    at = draw.randrange(len(lines))
    try:
        place = whole = json.loads(lines[at])
    except ValueError:
        return content
    for _ in range(draw.randrange(5)):
        values = place.values() if isinstance(place, dict) else place
        inside = [value for value in values if isinstance(value, dict | list) and value]
        if not inside:
            break
        place = draw.choice(inside)
    key = draw.choice(list(place) if isinstance(place, dict) else range(len(place)))
    match draw.randrange(4):
        case 0:
            del place[key]
        case 1 if isinstance(place, dict):
            place[draw.choice(("extra", "schema", "value", "sha256"))] = draw.choice(VALUES)
        case _:
            place[key] = draw.choice(VALUES)
    lines[at] = json.dumps(whole).encode()
    return b"\n".join(lines)
