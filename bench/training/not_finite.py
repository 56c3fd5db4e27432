"""A loss that is no number: at which step, and on which sentences."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import RunFailed
from bench.files import write_whole
from bench.runs.files import FAILED_BATCH
from bench.torch_method import TorchMethod

if TYPE_CHECKING:
    from bench.corpora import TokenisedCorpus


def hint(method: TorchMethod) -> str:
    """What helps: of a training that is exact already, only smaller steps."""
    exact = method.context.precision == "fp32"
    return "a lower --set learning_rate=" + ("" if exact else ", or --precision fp32")


def loss_not_finite(
    loss: float, step: int, rows: Sequence[int], method: TorchMethod, corpus: TokenisedCorpus, kept: str
) -> RunFailed:
    """The error to raise. The batch's sentences are written beside the curve; ``kept`` says what of the training is left."""
    path = method.context.folder / FAILED_BATCH
    written = False
    with contextlib.suppress(OSError):  # a full disk must not hide what happened
        if method.ranks.lead:
            write_batch(path, rows, method, corpus)
            written = True
    where = f"; the {len(rows)} rows of its batch are in {path}" if written else ""
    return RunFailed(f"the loss became {loss} at step {step}{where}; {kept}", hint(method))


def weights_not_finite(step: int, method: TorchMethod, kept: str) -> RunFailed:
    """Of weights that a gradient has made so although the loss was a number."""
    return RunFailed(f"weights became NaN or infinite by step {step}; {kept}", hint(method))


def write_batch(path: Path, rows: Sequence[int], method: TorchMethod, corpus: TokenisedCorpus) -> None:
    """One line a row: its number in the corpus, from 1, then its columns as the method saw them."""
    columns = [corpus.column(i).rows(rows) for i in range(len(corpus.columns))]
    lines = ["\t".join(("row", *corpus.columns))]
    for i, row in enumerate(rows):
        texts = [_text(column[i], name, method) for name, column in zip(corpus.columns, columns, strict=True)]
        lines.append("\t".join((str(int(row) + 1), *(" ".join(text.split()) for text in texts))))
    write_whole(path, ("\n".join(lines) + "\n").encode())


def _text(value: Any, name: str, method: TorchMethod) -> str:
    """A cell as text: ids go back through the tokenizer, where there is one."""
    if isinstance(value, str):
        return value
    ids = [int(one) for one in value]
    decode = getattr(method.backbone.tokenizer, "decode", None)
    return " ".join(map(str, ids)) if name == "label" or decode is None else str(decode(ids))
