"""Runs in one file that another person's board checks and takes in.

from bench.verify.submit import collect, pack

pack([Path("runs/simcse-builtin-s42-1a2b3c4d")], Path("mine.zip"), by="Ada Lovelace, Example University")
taken = collect(Path("submissions"), Path("aside"), own=[])
"""

from __future__ import annotations

from bench.verify.submit.check import Submissions, SubmittedRun, collect, receive
from bench.verify.submit.packing import Packed, pack
from bench.verify.submit.unpacking import Unpacked, unpack

__all__ = [
    "Packed",
    "Submissions",
    "SubmittedRun",
    "Unpacked",
    "collect",
    "pack",
    "receive",
    "unpack",
]
