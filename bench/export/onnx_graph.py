"""A method as ``model.onnx``: (input_ids, attention_mask) -> sentence_embedding, the whole way from token ids to the vector.

``tokenizer.json`` cuts and pads as the method does. Methods whose input is more than a sentence's own tokens (a template around
it, words in the place of tokens, a text put before it) are refused.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.base.errors import BenchError, RunFailed, one_line

if TYPE_CHECKING:
    import numpy as np

    from bench.method import Method
    from bench.method.features import Features

PACKAGES = ("onnx", "onnxscript", "onnxruntime")
GRAPH = "model.onnx"
INSTEAD = "--format sentence-transformers"
LONG = 100_000  # tokens: more than any model reads

EXAMPLE = """import numpy as np
import onnxruntime
from tokenizers import Tokenizer

folder = {folder}  # of a model on the hub: huggingface_hub.snapshot_download("owner/name")
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")  # cuts and pads
session = onnxruntime.InferenceSession(folder + "/model.onnx")
found = tokenizer.encode_batch(["A man is playing a guitar.", "Two dogs run."])
ids, mask = (np.array([getattr(one, name) for one in found]) for name in ("ids", "attention_mask"))
(vectors,) = session.run(None, {{"input_ids": ids, "attention_mask": mask}})
print(vectors.shape)
"""


def check_packages() -> None:
    """Raises BenchError that names what is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise BenchError(f"--format onnx needs {', '.join(missing)}, not installed here", f"pip install {' '.join(missing)}")


def limits(method: Method) -> tuple[Features, int, bool]:
    """Features to trace with, the longest input, and whether every input is as long as that.

    Raises BenchError where the method reads more than the tokens of a sentence.
    """
    from bench.method.torch_method import TorchMethod

    if not isinstance(method, TorchMethod):
        raise BenchError(f"{method.name} is no torch model, of which a graph could be made", INSTEAD)
    if method.portable().write is not None:
        raise BenchError(f"{method.name}: the run is a sentence-transformers folder, whose own modules make the vector", INSTEAD)
    if method.own_backbone is not None:
        raise BenchError(f"{method.name} reads more than the tokens of a sentence: word vectors of its own", INSTEAD)
    token = int(method.backbone.ids(["a"])[0][0])
    features = method.assemble([[token] * 3, [token] * 5])
    if more := sorted(set(features) - {"input_ids", "attention_mask"}):
        what = f"{method.name} reads more than the tokens of a sentence ({', '.join(more)})"
        raise BenchError(f"{what}, which no tokenizer file can make", INSTEAD)
    shortest, longest = (method.assemble([[token] * count])["input_ids"].shape[1] for count in (1, LONG))
    return features, longest, shortest == longest


def write(method: Method, folder: Path) -> None:
    """Write graph and tokenizer. Raises BenchError where the method reads more than the tokens of a sentence."""
    import torch

    check_packages()
    features, longest, fixed = limits(method)
    graph = _wrapped(method).eval()
    width: Any = torch.export.Dim.STATIC if fixed else torch.export.Dim("tokens", min=3, max=longest)
    shape = {0: torch.export.Dim("sentences", min=1, max=65536), 1: width}
    given = (features["input_ids"], features["attention_mask"])
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                graph,
                given,
                dynamo=True,
                input_names=["input_ids", "attention_mask"],
                output_names=["sentence_embedding"],
                dynamic_shapes=(shape, shape),
                verbose=False,
                external_data=False,
            )
            assert program is not None
            program.save(str(folder / GRAPH))
    except Exception as error:  # the exporter raises many kinds
        raise RunFailed(f"{method.name} on {method.backbone.name} could not be made an ONNX graph: {one_line(error)}", INSTEAD) from None
    _tokenizer(method, folder, longest, fixed)


def _wrapped(method: Any) -> Any:
    import torch

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.method = method

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.method.embed({"input_ids": input_ids, "attention_mask": attention_mask})

    # in one pass: which rows go together otherwise depends on their lengths, which a graph does not know
    object.__setattr__(method, "hidden", method.states)
    method.encoder.set_attn_implementation("eager")
    return Graph()


def _tokenizer(method: Any, folder: Path, longest: int, fixed: bool) -> None:
    method.backbone.tokenizer.save_pretrained(folder)
    tokenizer = method.backbone.tokenizer.backend_tokenizer
    tokenizer.enable_truncation(longest)
    pad = {"pad_id": method.pad_id, "pad_token": method.backbone.tokenizer.pad_token or "[PAD]"}
    tokenizer.enable_padding(length=longest if fixed else None, **pad)
    tokenizer.save(str(folder / "tokenizer.json"))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's advice is about its own insides."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def vectors(folder: Path, sentences: Sequence[str]) -> np.ndarray:
    """(n, dim), by onnxruntime and the folder's own tokenizer."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    session = onnxruntime.InferenceSession(str(folder / GRAPH), providers=["CPUExecutionProvider"])
    found = []
    for start in range(0, len(sentences), 4):
        encoded = tokenizer.encode_batch(list(sentences[start : start + 4]))
        given = {"input_ids": [text.ids for text in encoded], "attention_mask": [text.attention_mask for text in encoded]}
        found.append(session.run(None, {name: np.array(rows, dtype=np.int64) for name, rows in given.items()})[0])
    return np.concatenate(found)
