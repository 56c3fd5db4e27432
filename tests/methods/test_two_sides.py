"""Queries and documents are encoded as sentence-transformers encodes them, and scored as mteb
scores its models.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import built
from sentence_transformers import SentenceTransformer
from shared_words import made, write_folder
from st_folders import bert_folder, st_folder, word_tokenizer

import bench
from bench.base.errors import BenchError
from bench.method.prompts import Way
from bench.methods.pretrained import Pretrained

TEXTS = ["a film was long", "The Film", "slow and worth every minute", "café"]
Change = Callable[[Any], None]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tokenizer = word_tokenizer()
    tokenizer.add_tokens(sorted({word for row in made()["corpus"] for word in row["text"].split()}))
    return bert_folder(tmp_path_factory.mktemp("bert") / "bert", tokenizer)


def both(model: Any) -> None:
    model.prompts = {"query": "query: ", "document": "a film: "}


def passage(model: Any) -> None:
    model.prompts = {"query": "query: ", "passage": "in the "}


def default(model: Any) -> None:
    model.prompts = {"STS": "The "}
    model.default_prompt_name = "STS"


def without_prompt(model: Any) -> None:
    both(model)
    model[1].include_prompt = False


PROMPTS: dict[str, Change] = {
    change.__name__: change for change in (passage, default, without_prompt)
}


def routed(place: Path, bert: Path, default_route: str | None = "document") -> Path:
    """Save a model with a transformer for documents and static vectors for queries."""
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import (
        Pooling,
        StaticEmbedding,
        Transformer,
    )

    first = Transformer(str(bert))
    size = first.get_embedding_dimension()
    weights = np.random.default_rng(0).normal(size=(len(first.tokenizer), size))
    words = StaticEmbedding(
        first.tokenizer.backend_tokenizer, embedding_weights=weights.astype(np.float32)
    )
    router = Router.for_query_document(
        [words], [first, Pooling(size, "mean")], default_route=default_route, allow_empty_key=False
    )
    SentenceTransformer(modules=[router], device="cpu").save(str(place), create_model_card=False)
    return place


def library(folder: Path) -> Any:
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def check_sides(folder: Path, place: Path) -> None:
    method = built(Pretrained, str(folder), place)
    model = library(folder)
    for side in ("query", "document"):
        wanted = getattr(model, f"encode_{side}")(TEXTS, show_progress_bar=False)
        found = method.encode_with(Way(side=side), TEXTS)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)
    assert method.tells_sides
    apart = method.encode_with(Way(side="query"), TEXTS) - method.encode_with(
        Way(side="document"), TEXTS
    )
    assert np.abs(apart).max() > 1e-3 or "default" in folder.name


@pytest.mark.parametrize("name", PROMPTS)
def test_sides_are_those_of_the_library(name: str, bert: Path, tmp_path: Path) -> None:
    check_sides(st_folder(tmp_path / name, bert, change=PROMPTS[name]), tmp_path)


def test_a_prompt_that_is_given_goes_before_the_models_own(bert: Path, tmp_path: Path) -> None:
    folder = st_folder(tmp_path / "model", bert, change=both)
    method = built(Pretrained, str(folder), tmp_path, prompt="The ")
    wanted = library(folder).encode(TEXTS, prompt="The ", show_progress_bar=False)
    assert not method.tells_sides
    np.testing.assert_allclose(method.encode(TEXTS), wanted, rtol=0, atol=2e-5)
    found = method.encode_with(Way("in the ", "query"), TEXTS)
    wanted = library(folder).encode_query(TEXTS, prompt="in the ", show_progress_bar=False)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5)


def mteb_says(model: Any) -> float:
    """Return mteb's nDCG@10 x 100; its warnings are not ours."""
    import mteb
    from mteb_tasks import Shared

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = mteb.evaluate(
            model, Shared(), cache=None, encode_kwargs={"show_progress_bar": False}
        )
    (scores,) = done.task_results[0].scores["test"]
    return 100 * float(scores["ndcg_at_10"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["prompts", "routes"])
def test_folders_and_objects_have_mtebs_scores(kind: str, bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / kind
    if kind == "prompts":
        st_folder(folder, bert, change=both)
    else:
        routed(folder, bert)
    suite = f"retrieval:{write_folder(tmp_path / 'words')}"
    options: dict[str, Any] = {"runs": tmp_path / "runs", "progress": False}
    wanted = mteb_says(library(folder))
    of_folder = bench.evaluate(str(folder), suite, **options)
    assert of_folder.frame()["value"].item() == pytest.approx(wanted, abs=0.01)
    of_object = bench.evaluate(library(folder), suite, **options)
    assert of_object.frame()["value"].item() == pytest.approx(wanted, abs=0.01)
    sides = of_object.record.provenance.backbone.model["sides"]
    assert sides == of_folder.record.provenance.backbone.model["sides"]
    # one vector for both would be another score
    alike = bench.evaluate(lambda texts: library(folder).encode(texts), suite, **options)
    assert abs(alike.frame()["value"].item() - wanted) > 0.02


def test_a_model_without_a_default_route_is_scored_by_its_sides_alone(
    bert: Path, tmp_path: Path
) -> None:
    folder = routed(tmp_path / "routed", bert, default_route=None)
    suite = f"retrieval:{write_folder(tmp_path / 'words')}"
    options: dict[str, Any] = {"runs": tmp_path / "runs", "progress": False}
    assert 0 < bench.evaluate(str(folder), suite, **options).frame()["value"].item() < 100
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("sentence1\tsentence2\tscore\na man\ta dog\t1\nrain\tred\t2\n")
    with pytest.raises(BenchError, match="no default route"):
        bench.evaluate(str(folder), pairs, **options)
