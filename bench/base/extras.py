"""How to install the optional libraries of bench."""

from __future__ import annotations

import logging


def install_hint(extra: str) -> str:
    """Say how to install bench with an extra such as ``publish``.

    No name of a package is in it: bench is installed from a clone, not from an index.
    """
    return f"in a clone of bench: pip install -c constraints.txt '.[{extra}]'"


def silence_advice() -> None:
    """Keep bitsandbytes from advising to install another package, as it does on some CPUs.

    peft imports it if it is there, and sentence-transformers imports peft.
    """
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
