"""Every method works on every family, or refuses before anything starts; and the facts about
families are checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from commands import argv
from family_models import FAMILIES as MODELS
from safetensors.torch import load_file
from works import COLUMNS, ROWS, Row, refusal, table, try_it

from bench.backbones import load, resolve
from bench.backbones.families import FAMILIES, check_mlm_head
from bench.base.errors import BenchError, NotAModel

Models = Callable[[str], str]
EVERY = pytest.mark.parametrize("name", COLUMNS)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    place = tmp_path_factory.mktemp("families")
    return cache(lambda name: MODELS[name](place / name))


@pytest.mark.nightly
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.what or row.setting}")
@EVERY
def test_a_method_works_on_a_family_or_refuses_before_anything_starts(
    row: Row, name: str, models: Models, tmp_path: Path
) -> None:
    error = refusal(row, models(name), tmp_path)
    if error is None:
        try_it(row, models(name), tmp_path)
    else:
        assert "\n" not in error.message and error.hint
        assert (
            FAMILIES[name.removesuffix("-generator")].title in error.message
            or "MLM head" in error.message
        )


def test_the_table_of_the_docs_is_what_the_tests_found(models: Models) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "backbones.md").read_text(encoding="utf-8")
    assert table(models) in docs, "python tests/support/works.py prints the table as it is now"


def test_the_docs_list_all_families() -> None:
    page = Path(__file__).parents[2] / "docs" / "backbones.md"
    text = page.read_text(encoding="utf-8")
    for model_type, family in FAMILIES.items():
        assert f"| {family.title} (`{model_type}`) |" in text


@EVERY
def test_the_facts_about_a_familys_positions_hold(name: str, models: Models) -> None:
    """Tokens in another order, each with the position id that it had, give the same states in that
    order, or they do not.
    """
    backbone = load(resolve(models(name)))
    ids, order = (
        torch.randint(5, 70, (1, 10), generator=torch.Generator().manual_seed(1)),
        torch.tensor([3, 0, 7, 1, 9, 5, 2, 8, 6, 4]),
    )
    places = torch.arange(10) + backbone.first_position
    with torch.no_grad():
        plain = backbone.encoder(
            input_ids=ids, attention_mask=torch.ones_like(ids)
        ).last_hidden_state
        explicit = backbone.encoder(input_ids=ids, position_ids=places[None]).last_hidden_state
        moved = backbone.encoder(
            input_ids=ids[:, order], position_ids=places[order][None]
        ).last_hidden_state
    torch.testing.assert_close(explicit, plain)
    same = torch.allclose(moved, plain[:, order], atol=1e-4)
    assert same == FAMILIES[backbone.family].placed


@EVERY
def test_a_prefix_is_taken_where_it_is_said_to_be(name: str, models: Models) -> None:
    """A prefix changes the states; a prefix with keys that no query attends to leaves them
    unchanged behind positions of their own.
    """
    from bench.methods.prefix import prompt_for, states_behind_prefix

    backbone = load(resolve(models(name)))
    if not FAMILIES[backbone.family].prefix:
        with pytest.raises(BenchError, match="take no keys and values from outside"):
            prompt_for(backbone, "deep", 4)
        return
    ids = torch.tensor([[2, 10, 11, 12, 3]])
    features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    nothing = [(torch.zeros(1, 2, 4, 16), torch.zeros(1, 2, 4, 16)) for _ in range(2)]
    seen: list[torch.Tensor] = []
    embeddings = backbone.encoder.embeddings.register_forward_hook(
        lambda _m, _i, out: seen.append(out)
    )
    with torch.no_grad():
        behind = states_behind_prefix(backbone.encoder, features, nothing)
        shifted = backbone.encoder(
            **features, position_ids=torch.arange(5)[None] + backbone.first_position + 4
        ).last_hidden_state
    embeddings.remove()
    torch.testing.assert_close(seen[0], seen[1])  # the sentence starts at position P
    assert not torch.allclose(behind, shifted), (
        "zeros as keys take part of the attention all the same"
    )


def test_the_mlm_heads_of_all_families_give_the_models_own_logits(models: Models) -> None:
    """The head that is cut out, on the encoder's states, against transformers' whole model."""
    from transformers import AutoModelForMaskedLM

    found = []
    for name in COLUMNS:
        backbone = load(resolve(models(name)))
        try:
            check_mlm_head(backbone.path)
        except NotAModel:
            with pytest.raises(NotAModel, match="no MLM head"):
                backbone.mlm_head()
            continue
        found.append(name)
        ids, mask = torch.tensor([[5, 6, 7, 8]]), torch.ones(1, 4, dtype=torch.int64)
        whole = AutoModelForMaskedLM.from_pretrained(models(name)).eval()
        with torch.no_grad():
            states = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
            torch.testing.assert_close(
                backbone.mlm_head().eval()(states), whole(input_ids=ids, attention_mask=mask).logits
            )
    assert found == argv("bert roberta xlm-roberta electra-generator distilbert mpnet modernbert")


@pytest.mark.parametrize("name", ["albert", "nomic_bert", "eurobert"])
def test_the_heads_of_later_families_give_the_models_own_logits(name: str, tmp_path: Path) -> None:
    """... EuroBERT's matrix is not tied to the word embeddings."""
    from every_family import EVERY as LATER
    from transformers import AutoModelForMaskedLM

    folder = LATER[name](tmp_path / name)
    backbone = load(resolve(folder))
    ids, mask = torch.tensor([[5, 6, 7, 8]]), torch.ones(1, 4, dtype=torch.int64)
    whole = AutoModelForMaskedLM.from_pretrained(folder).eval()
    with torch.no_grad():
        states = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        logits = whole(input_ids=ids, attention_mask=mask).logits
        torch.testing.assert_close(backbone.mlm_head().eval()(states), logits)


@pytest.mark.parametrize("name", ["qwen3", "opt"])
def test_the_output_matrix_of_a_decoder_gives_its_logits(name: str, tmp_path: Path) -> None:
    from every_family import EVERY as LATER
    from transformers import AutoModelForCausalLM

    folder = LATER[name](tmp_path / name)
    backbone = load(resolve(folder))
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        states = backbone.encoder(input_ids=ids).last_hidden_state
        whole = AutoModelForCausalLM.from_pretrained(folder).eval()
        torch.testing.assert_close(states @ backbone.lm_matrix().T, whole(input_ids=ids).logits)
    with pytest.raises(NotAModel, match="has no MLM head.*to continue texts"):
        check_mlm_head(Path(folder))


def test_heads_may_stay_unused_and_any_other_tensor_is_an_error(
    models: Models, tmp_path: Path
) -> None:
    from released import with_tensors

    plain = models("bert")
    assert load(resolve(plain)).report().endswith("none missing; ignored: cls")
    weights = load_file(Path(plain) / "model.safetensors")
    more = {
        n.replace("layer.1", "layer.2"): t.clone() for n, t in weights.items() if "layer.1" in n
    }
    with pytest.raises(
        NotAModel, match=rf"deeper/model\.safetensors .*layer\.2.* and {len(more) - 3} more"
    ) as caught:
        load(resolve(with_tensors(plain, tmp_path / "deeper", more)))
    assert "config.json" in str(caught.value.hint)
    other = {"adapters.weight": torch.ones(3), "bert.adapters.weight": torch.ones(3)}
    for name, tensor in other.items():
        folder = with_tensors(plain, tmp_path / name, {name: tensor})
        with pytest.raises(NotAModel, match="adapters.weight"):
            load(resolve(folder))
        load(resolve(folder), reads=("adapters.",))


NOT_NEEDED = (
    "mlp.dense.weight",
    "mlp.net.0.weight",
    "pooler.key_layer.weight",
    "lm_head.dense.weight",
    "electra_head.weight",
    "aux_bert.embeddings.word_embeddings.weight",
    "generator.distilbert.embeddings.word_embeddings.weight",
    "discriminator.encoder.layer.0.output.dense.weight",
    "bert.embeddings.position_ids",
    "embeddings.token_type_ids",
)


def test_stored_parts_that_no_score_needs_are_harmless(models: Models, tmp_path: Path) -> None:
    """SimCSE's and PromptBERT's head, DiffCSE's three networks, Focal-InfoNCE's renamed head, and
    what old transformers stored.
    """
    from released import with_tensors

    more = {name: torch.ones(2) for name in NOT_NEEDED}
    backbone = load(resolve(with_tensors(models("bert"), tmp_path / "more", more)))
    plain = load(resolve(models("bert")))
    for name, parameter in plain.encoder.named_parameters():
        assert torch.equal(parameter, backbone.encoder.get_parameter(name)), name
