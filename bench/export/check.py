"""What an export gives, against what the method gives: the written folder is loaded by the tool that it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.base.errors import RunFailed

if TYPE_CHECKING:
    import numpy as np

    from bench.method import Method

TOLERANCE = 1e-5
"""How far a vector may move by batch and padding, and how far an export's may lie from the method's."""
SENTENCES = (
    "A man is playing a guitar .", "Yes", "", " two blanks  before a word ", "He said \"wait\" , and left!", "NASA's probe (2021)?",
    "Zwölf Boxkämpfer jagen Viktor über den Sylter Deich – naïve café 你好 🙂", "a [MASK] and a </s> in the text",
    "Prices rose by 3.5 % in March , the bank said , although most forecasts had been higher : 'much' higher . " * 3,
    "A sentence that is longer than any of these models reads , so that it is cut . " * 60,
)  # fmt: skip


def compare(method: Method, folder: Path, form: str) -> tuple[float, int]:
    """The largest difference of a vector's entry, relative to the vector's largest where that is above 1; and the dimensions.

    Raises RunFailed where it is above 1e-5, or above twice what the method's own vectors move when each sentence is encoded
    alone: whitening's do by more than 1e-5, for it stretches the directions in which vectors hardly differ, rounding included.
    """
    import numpy as np

    mine = method.encode(list(SENTENCES))
    alone = np.concatenate([method.encode([sentence]) for sentence in SENTENCES])
    allowed = max(TOLERANCE, 2 * relative(mine, alone))
    theirs = _read(form, folder)
    if mine.shape != theirs.shape:
        raise RunFailed(f"the export as {form} gives vectors of shape {theirs.shape}, the method {mine.shape}")
    difference = relative(mine, theirs)
    if not difference <= allowed:
        raise RunFailed(
            f"the export as {form} gives other vectors than {method.name}: they differ by {difference:.1g}, "
            f"allowed are {allowed:.1g}; nothing was written",
            "this is a fault of bench or of the method's portable(): please report it",
        )
    return difference, int(mine.shape[1])


def _read(form: str, folder: Path) -> np.ndarray:
    try:
        return READERS[form](folder, SENTENCES)
    except Exception as error:  # whatever the tool raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise RunFailed(f"the export as {form} cannot be loaded: {reason}", "please report it") from None


def relative(mine: np.ndarray, theirs: np.ndarray) -> float:
    """max |a - b| / max(1, max |a|), row by row. NaN counts as infinite."""
    import numpy as np

    scale = np.maximum(1.0, np.abs(mine).max(axis=1, keepdims=True))
    difference = float((np.abs(mine.astype(np.float64) - theirs) / scale).max())
    return difference if np.isfinite(difference) else float("inf")


def by_sentence_transformers(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from bench.backbones import quiet

    quiet()
    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=True, local_files_only=True)
    return np.asarray(model.encode(list(sentences), batch_size=4, show_progress_bar=False))


def by_transformers(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    from bench.export.transformers_folder import vectors

    return vectors(folder, sentences)


def by_onnx(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    from bench.export.onnx_graph import vectors

    return vectors(folder, sentences)


READERS: dict[str, Callable[[Path, Sequence[str]], np.ndarray]] = {
    "sentence-transformers": by_sentence_transformers,
    "mteb": by_sentence_transformers,
    "transformers": by_transformers,
    "onnx": by_onnx,
}
