"""Methods that read vectors from a frozen decoder, against plain loops over its layers.

CSE-SFP, MetaEOL, Echo, EmbedFilter, Token Prepending and Contrastive Prompting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from every_family import EVERY
from harness import batch_of, info_nce
from models import built, sentences
from tiny_decoders import EOL, cleaned, states_of

from bench.base.errors import BenchError
from bench.export.st_folder import st_vectors, write_st
from bench.export.vectors import relative_difference
from bench.method import Recipe, Value
from bench.methods.contrastive_prompting import ContrastivePrompting
from bench.methods.cse_sfp import CSESFP
from bench.methods.echo import Echo
from bench.methods.embedfilter import EmbedFilter
from bench.methods.metaeol import MetaEOL
from bench.methods.metaeol_prompts import META_PROMPTS
from bench.methods.prompteol import PromptEOL
from bench.methods.token_prepending import TokenPrepending

TEXTS = ['He said "no"', "Is it ?", "a man", *sentences(3, seed=8)]


@pytest.fixture(
    scope="module",
    params=["qwen3", *(pytest.param(one, marks=pytest.mark.nightly) for one in ("opt", "gpt2"))],
)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return EVERY[request.param](tmp_path_factory.mktemp("read") / request.param)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> str:
    return EVERY["qwen3"](tmp_path_factory.mktemp("read") / "qwen")


def check_close(found: np.ndarray, rows: list[Any]) -> None:
    wanted = torch.stack(rows).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_both_views_of_cse_sfp_come_from_one_prompt(folder: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    words = 'This sentence : "{x}" means in one word, it can be summarized as'
    method = built(CSESFP, folder, tmp_path, setting="unsupervised", dropout=0.0).double()
    texts = sentences(4, seed=1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    anchors, positives = [], []
    for text in texts:
        prompt = words.format(x=text)
        states = states_of(folder, prompt)[-1]
        end = prompt.rindex("word") + 4
        at = [b for _, b in tokenizer(prompt, return_offsets_mapping=True)["offset_mapping"]]
        anchors.append(states[-1].numpy())
        positives.append(states[at.index(end)].numpy())
    loss = method(batch_of(method, texts)).total.item()
    assert loss == pytest.approx(info_nce(anchors, positives), abs=1e-6)
    cut = [states_of(folder, words.format(x=cleaned(text)))[-1, -1] for text in TEXTS]
    check_close(method.encode(TEXTS), cut)


def test_a_pivot_that_is_no_word_of_its_own_is_refused(qwen: str, tmp_path: Path) -> None:
    method = built(CSESFP, qwen, tmp_path, setting="unsupervised")
    recipe = Recipe(method.recipe.values_with_source() | {"pivot": Value("dog", "test")})
    with pytest.raises(BenchError, match="pivot=dog: the template has to have this word once"):
        CSESFP.check(recipe, None)
    with pytest.raises(BenchError, match="has one token for 'wo', which is more than the pivot"):
        built(CSESFP, qwen, tmp_path, setting="unsupervised", pivot="w")


def test_the_prompts_of_metaeol_are_eight_and_long(qwen: str, tmp_path: Path) -> None:
    names = list(META_PROMPTS)
    assert len(names) == 8 and all(words.count("[X]") == 1 for words in META_PROMPTS.values())
    with pytest.raises(BenchError, match="no sentence has room"):  # out of the 128 positions
        built(MetaEOL, qwen, tmp_path, tasks="categories").encode(["a"])
    with pytest.raises(BenchError, match="there is no prompt 'x'"):
        built(MetaEOL, qwen, tmp_path, tasks="x")


def test_metaeol_against_a_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = EVERY["opt"](tmp_path / "opt")
    short = {"one": 'one : "[X]" is:"', "two": 'two "[X]" says:"', "three": 'then "[X]":"'}
    for name, words in short.items():
        monkeypatch.setitem(META_PROMPTS, name, words)
    method = built(MetaEOL, folder, tmp_path, tasks="one+two+three").double()
    rows = []
    for text in TEXTS:
        states = [
            states_of(folder, words.replace("[X]", cleaned(text)))[-1, -1]
            for words in short.values()
        ]
        rows.append(torch.stack(states).mean(0))
    check_close(method.encode(TEXTS), rows)


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_echo_pools_the_second_copy_alone(folder: str, pooling: str, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    method = built(Echo, folder, tmp_path, pooling=pooling).double()
    rows = []
    for text in TEXTS:
        first = f"Rewrite the sentence: {text}, rewritten sentence: "
        states = states_of(folder, first + text)[-1]
        offsets = tokenizer(first + text, return_offsets_mapping=True)["offset_mapping"]
        inside = [i for i, (_, b) in enumerate(offsets) if b > len(first)]
        rows.append(states[inside].mean(0) if pooling == "mean" else states[inside[-1]])
    check_close(method.encode(TEXTS), rows)
    assert not method.encode(["", "a"])[0].any()
    long = "a man plays the guitar " * 60
    assert np.isfinite(method.encode([long])).all()


def test_embedfilter_leaves_out_the_first_and_last_directions(folder: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    method = built(EmbedFilter, folder, tmp_path, drop_first=3, drop_last=5).double()
    whole = AutoModelForCausalLM.from_pretrained(folder)
    matrix = whole.get_output_embeddings().weight.detach().double()
    kept = torch.linalg.svd(matrix, full_matrices=False).Vh[3:-5]
    vectors = torch.stack(
        [states_of(folder, EOL.format(x=cleaned(text)))[-1, -1] for text in TEXTS]
    )
    found = torch.from_numpy(method.encode(TEXTS)).double()
    wanted = vectors @ kept.T
    assert found.shape == (len(TEXTS), 24)
    torch.testing.assert_close(found @ found.T, wanted @ wanted.T, rtol=1e-5, atol=1e-5)
    with pytest.raises(BenchError, match="leave nothing of 32 directions"):
        built(EmbedFilter, folder, tmp_path, drop_first=30)


def layers_by_hand(model: Any, states: Any, change: Any) -> list[Any]:
    """Run a Qwen3's layers one by one; ``change`` gets the number of a layer and its input."""
    import transformers

    inner = model.model
    T = states.shape[1]
    places = torch.arange(T)[None]
    rotary = inner.rotary_emb(states, places)
    mask = torch.full((T, T), torch.finfo(states.dtype).min, dtype=states.dtype).triu(1)[None, None]
    assert isinstance(inner, transformers.Qwen3Model)
    found = [states]
    for number, layer in enumerate(inner.layers):
        states = change(number, states)
        states = layer(states, attention_mask=mask, position_ids=places, position_embeddings=rotary)
        found.append(states)
    return [*found[:-1], inner.norm(found[-1])]


def qwen_model(folder: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    return model, AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize(("first", "last", "layer"), [(1, 2, -1), (0, 2, -2)])
def test_token_prepending_moves_the_last_state_to_the_placeholder(
    qwen: str, first: int, last: int, layer: int, tmp_path: Path
) -> None:
    values: dict[str, Any] = {"first_layer": first, "last_layer": last, "layer": layer}
    method = built(TokenPrepending, qwen, tmp_path, **values).double()
    model, tokenizer = qwen_model(qwen)
    words = model.get_input_embeddings().weight
    rows = []
    for text in TEXTS:
        before = tokenizer("This sentence : ")["input_ids"]
        after = tokenizer(f' "{cleaned(text)}" means in one word:"')["input_ids"]
        vectors = torch.cat([words[before], words.mean(0)[None], words[after]])[None]

        def change(number: int, states: Any, place: int = len(before)) -> Any:
            if not first <= number < last:
                return states
            states = states.clone()
            states[0, place] = states[0, -1]
            return states

        with torch.no_grad():
            rows.append(layers_by_hand(model, vectors, change)[layer][0, -1])
    check_close(method.encode(TEXTS), rows)


def test_token_prepending_without_layers_is_the_plain_decoder(folder: str, tmp_path: Path) -> None:
    """... and the placeholder's word embedding does not count from layer 0 on."""
    values: dict[str, Any] = {"first_layer": 0, "last_layer": 2, "layer": -1}
    one = built(TokenPrepending, folder, tmp_path, **values).encode(TEXTS)
    other = built(TokenPrepending, folder, tmp_path, placeholder="normal", **values).encode(TEXTS)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    values |= {"first_layer": 1, "last_layer": 1}
    off = built(TokenPrepending, folder, tmp_path, **values).encode(TEXTS)
    unlike = built(TokenPrepending, folder, tmp_path, placeholder="normal", **values).encode(TEXTS)
    assert np.abs(off - one).max() > 1e-3 and np.abs(off - unlike).max() > 1e-4


@pytest.mark.parametrize("layer", [-2, -1])
def test_what_is_changed_is_read(qwen: str, layer: int, tmp_path: Path) -> None:
    """The papers' layers are those of deep decoders; this one has two."""
    plain = built(PromptEOL, qwen, tmp_path, layer=layer).encode(TEXTS)
    steered = built(ContrastivePrompting, qwen, tmp_path, layer=layer).encode(TEXTS)
    assert np.abs(steered - plain).max() > 1e-3
    still = built(TokenPrepending, qwen, tmp_path, layer=layer, first_layer=1, last_layer=1)
    moved = built(TokenPrepending, qwen, tmp_path, layer=layer)
    assert np.abs(moved.encode(TEXTS) - still.encode(TEXTS)).max() > 1e-3
    for cls in (ContrastivePrompting, TokenPrepending):
        with pytest.raises(BenchError, match="layer=-3 reads the embeddings"):
            built(cls, qwen, tmp_path, layer=-3)


def test_token_prepending_changes_the_last_layer_below_the_one_that_is_read(
    qwen: str, tmp_path: Path
) -> None:
    late = built(TokenPrepending, qwen, tmp_path, first_layer=9, last_layer=12).encode(TEXTS)
    first = built(TokenPrepending, qwen, tmp_path, first_layer=0, last_layer=1).encode(TEXTS)
    np.testing.assert_array_equal(late, first)


@pytest.mark.parametrize("norm", ["scaled", "restored"])
def test_contrastive_prompting_steers_one_layer(qwen: str, norm: str, tmp_path: Path) -> None:
    values: dict[str, Any] = {"norm": norm, "steered_layer": 1, "strength": 1.5, "layer": -1}
    method = built(ContrastivePrompting, qwen, tmp_path, **values).double()
    model, tokenizer = qwen_model(qwen)
    second = 'The irrelevant information of this sentence : "{x}" means in one word:"'
    rows = []
    for text in TEXTS:
        heads: list[Any] = []
        joined = model.model.layers[0].self_attn.o_proj
        hook = joined.register_forward_pre_hook(lambda m, i, heads=heads: heads.append(i[0][0, -1]))
        with torch.no_grad():
            for words in (EOL, second):
                model(torch.tensor([tokenizer(words.format(x=cleaned(text)))["input_ids"]]))
            hook.remove()
            changed = heads[0] - heads[1]
            factor = 1.5 if norm == "scaled" else heads[0].norm() / changed.norm()

            def steer(module: Any, inputs: Any, new: Any = changed * factor) -> Any:
                whole = inputs[0].clone()
                whole[0, -1] = new
                return (whole,)

            hook = joined.register_forward_pre_hook(steer)
            ids = torch.tensor([tokenizer(EOL.format(x=cleaned(text)))["input_ids"]])
            rows.append(model(ids, output_hidden_states=True).hidden_states[-1][0, -1])
            hook.remove()
    check_close(method.encode(TEXTS), rows)


def test_contrastive_prompting_without_a_difference_is_promptEOL(
    folder: str, tmp_path: Path
) -> None:
    values: dict[str, Any] = {"strength": 1.0, "layer": -1}
    method = built(ContrastivePrompting, folder, tmp_path, **values)
    method.joined_heads = lambda features: torch.zeros(len(features["input_ids"]), 1)
    plain = built(PromptEOL, folder, tmp_path).encode(TEXTS)
    np.testing.assert_allclose(method.encode(TEXTS), plain, rtol=1e-5, atol=1e-5)


@pytest.mark.nightly
@pytest.mark.parametrize("cls", [CSESFP, Echo, EmbedFilter])
def test_exports_give_the_same_vectors(cls: Any, folder: str, tmp_path: Path) -> None:
    setting = {"setting": "unsupervised"} if cls is CSESFP else {}
    method = built(cls, folder, tmp_path, **setting)
    (tmp_path / "export").mkdir()
    write_st(method.portable(), tmp_path / "export")
    texts = [*TEXTS, "a man plays the guitar " * 60]
    found = st_vectors(tmp_path / "export", texts)
    assert relative_difference(method.encode(texts), found) <= 1e-5
