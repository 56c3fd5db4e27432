"""A ready-made encoder gets the vectors that sentence-transformers' own ``encode`` gives, or is
refused in one line.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from models import built, sentences
from safetensors.torch import load_file, save_file
from st_folders import bert_folder, edit_json, spread, st_folder, word_tokenizer

from bench.backbones import resolve
from bench.method import Context
from bench.method.context import SilentReporter
from bench.methods.pretrained import Pretrained

TEXTS = [*sentences(9, seed=9), "The Guitar WOMAN “reads” , café", "man woman " * 60, "a", "", " "]
CHAT = "{% for m in messages %}<s>{{ m['role'] }} {{ m['content'] }}</s>{% endfor %}"


class Lines(SilentReporter):
    """A reporter that keeps the lines it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, text: str, *, detail: bool = False) -> None:
        self.lines.append(text)


def loaded(folder: Path, place: Path, **values: Any) -> tuple[Any, list[str]]:
    """The method on a folder, and the lines that it said."""
    reporter = Lines()
    context = Context(folder=place, reporter=reporter)
    return built(Pretrained, str(folder), place, context=context, **values), reporter.lines


def theirs(folder: Path, texts: list[str] = TEXTS, **options: Any) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return np.asarray(model.encode(texts, batch_size=32, show_progress_bar=False, **options))


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert_folder(tmp_path_factory.mktemp("bert") / "bert")


def with_instruction(model: Any) -> None:
    model.prompts = {"query": "query: "}
    model.default_prompt_name = "query"
    model[1].include_prompt = False


def with_added_tokens(model: Any) -> None:
    from tokenizers import AddedToken

    model.tokenizer.add_tokens([AddedToken("WOMAN"), AddedToken("“reads”", lstrip=True)])
    model[0].model.resize_token_embeddings(len(model.tokenizer))
    spread(model[0].model)


# name -> (change of the model before it is saved, options of its Transformer module)
FOLDERS: dict[str, tuple[Callable[[Any], None], dict[str, Any]]] = {
    "lower case": (lambda model: None, {"do_lower_case": True}),
    "added tokens": (with_added_tokens, {}),
    "prompt that is not pooled": (with_instruction, {}),
    "arguments of the processor": (
        lambda model: None,
        {"processing_kwargs": {"text": {"max_length": 7}}},
    ),
    "no special tokens": (
        lambda model: None,
        {"processing_kwargs": {"text": {"add_special_tokens": False}}},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FOLDERS)
def test_the_vectors_are_those_of_encode(kind: str, bert: Path, tmp_path: Path) -> None:
    change, options = FOLDERS[kind]
    folder = st_folder(tmp_path / "model", bert, change=change, **options)
    method, lines = loaded(folder, tmp_path)
    np.testing.assert_allclose(method.encode(TEXTS), theirs(folder), rtol=0, atol=2e-5)
    assert not [line for line in lines if "alone" in line]
    assert "independent" not in method.about()


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_a_folder_stored_in_half_precision_is_encoded_in_float32_unless_told(
    dtype: str, bert: Path, tmp_path: Path
) -> None:
    folder = st_folder(tmp_path / "model", bert, change=lambda model: model.half())
    method, _ = loaded(folder, tmp_path, dtype=dtype)
    computed = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    assert {weight.dtype for weight in method.whole.parameters()} == {computed}
    assert method.encode(["a man", "a"]).dtype == np.float32
    assert method.about()["dtype"] == dtype


def test_positions_that_padding_on_the_left_moves_are_found(bert: Path, tmp_path: Path) -> None:
    folder = st_folder(tmp_path / "model", bert, pooling="cls")
    edit_json(folder / "tokenizer_config.json", padding_side="left")
    method, lines = loaded(folder, tmp_path)
    alone = np.concatenate([theirs(folder, [text]) for text in TEXTS])
    np.testing.assert_allclose(method.encode(TEXTS), alone, rtol=0, atol=2e-5)
    assert method.about()["independent"] is False
    assert any("so each is encoded alone" in line for line in lines)


def test_a_text_that_is_cut_at_its_beginning(bert: Path, tmp_path: Path) -> None:
    folder = st_folder(tmp_path / "model", bert, max_seq_length=9)
    edit_json(folder / "tokenizer_config.json", truncation_side="left")
    method, lines = loaded(folder, tmp_path)
    np.testing.assert_allclose(method.encode(TEXTS), theirs(folder), rtol=0, atol=2e-5)
    assert lines == []


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with a tokenizer that has a chat template: each text is a user's message."""
    place = tmp_path_factory.mktemp("chat")
    tokenizer = word_tokenizer()
    tokenizer.chat_template = CHAT
    return st_folder(place / "model", bert_folder(place / "bert", tokenizer))


def test_a_chat_template(chat: Path, tmp_path: Path) -> None:
    method, lines = loaded(chat, tmp_path)
    np.testing.assert_allclose(method.encode(TEXTS), theirs(chat), rtol=0, atol=2e-5)
    assert lines == []


def test_a_pooling_over_the_last_token_and_left_padding(bert: Path, tmp_path: Path) -> None:
    def change(model: Any) -> None:
        model.tokenizer.padding_side = "left"

    folder = st_folder(tmp_path / "model", bert, pooling="lasttoken", change=change)
    method, _ = loaded(folder, tmp_path)
    np.testing.assert_allclose(method.encode(TEXTS), theirs(folder), rtol=0, atol=2e-5)


def router(folder: Path, *, default: str | None) -> Path:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Router, StaticEmbedding

    torch.manual_seed(0)
    backend = word_tokenizer().backend_tokenizer
    routes = {task: [StaticEmbedding(backend, embedding_dim=6)] for task in ("query", "document")}
    modules = [Router(routes, default_route=default, allow_empty_key=default is not None)]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


def test_two_routers_with_other_weights_have_other_revisions(tmp_path: Path) -> None:
    one, two = router(tmp_path / "one", default="query"), tmp_path / "two"
    shutil.copytree(one, two)
    assert resolve(str(one)).revision == resolve(str(two)).revision
    weights = next(two.glob("query_*/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert resolve(str(one)).revision != resolve(str(two)).revision


def test_a_folder_without_an_end_of_texts_and_a_decoder_with_an_empty_text(tmp_path: Path) -> None:
    from transformers import BloomConfig, BloomModel

    tokenizer = word_tokenizer(ends=False)
    config = BloomConfig(vocab_size=len(tokenizer), hidden_size=16, n_layer=2, n_head=2)
    spread(BloomModel(config)).save_pretrained(tmp_path / "bloom")
    tokenizer.save_pretrained(tmp_path / "bloom")
    folder = st_folder(tmp_path / "model", tmp_path / "bloom")
    method, _ = loaded(folder, tmp_path)
    found = method.encode(TEXTS)
    np.testing.assert_allclose(found, theirs(folder), rtol=0, atol=2e-5)
    assert method.about()["max_tokens"] is None
    assert not found[TEXTS.index("")].any() and not method.encode([""]).any()
    for pooling in ("mean", "last"):
        plain, _ = loaded(tmp_path / "bloom", tmp_path, pooling=pooling)
        assert not plain.encode(["", "a man"])[0].any()


def test_t5(tmp_path: Path) -> None:
    from transformers import T5Config, T5EncoderModel, T5ForConditionalGeneration

    tokenizer = word_tokenizer()
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    config = T5Config(vocab_size=len(tokenizer), pad_token_id=0, decoder_start_token_id=0, **sizes)
    whole = spread(T5ForConditionalGeneration(config))
    whole.save_pretrained(tmp_path / "whole")
    encoder = T5EncoderModel.from_pretrained(tmp_path / "whole")
    encoder.save_pretrained(tmp_path / "encoder")
    for name in ("whole", "encoder"):
        tokenizer.save_pretrained(tmp_path / name)
        folder = st_folder(tmp_path / f"st-{name}", tmp_path / name)
        method, _ = loaded(folder, tmp_path)
        expected = theirs(folder)
        np.testing.assert_allclose(method.encode(TEXTS), expected, rtol=0, atol=2e-5)
        plain, _ = loaded(tmp_path / name, tmp_path, pooling="mean")
        np.testing.assert_allclose(plain.encode(TEXTS), expected, rtol=0, atol=2e-5)


def test_more_tokens_asked_for_than_there_are_positions(bert: Path, tmp_path: Path) -> None:
    folder = st_folder(tmp_path / "model", bert, max_seq_length=100)
    method, lines = loaded(folder, tmp_path)
    assert lines == [
        f"{folder} asks for 100 tokens per text and has 64 positions: longer texts are cut to 64 "
        "tokens"
    ]
    assert np.isfinite(method.encode(["man " * 300])).all()


def test_prompts_that_are_not_used_are_mentioned(bert: Path, tmp_path: Path) -> None:
    def change(model: Any) -> None:
        model.prompts = {"STS": "Represent: ", "query": "query: "}

    folder = st_folder(tmp_path / "model", bert, change=change)
    method, lines = loaded(folder, tmp_path)
    assert len(lines) == 1 and "query ('query: '), STS ('Represent: ')" in lines[0]
    assert method.about()["unused_prompts"] == {"STS": "Represent: ", "query": "query: "}
    _, lines = loaded(folder, tmp_path, prompt="query: ")
    assert lines == []


@pytest.mark.parametrize("prompt", ["query: ", 'The “ [X] ” means in one word " '])
def test_a_prompt_given_to_a_chat_model_goes_where_its_library_puts_it(
    prompt: str, chat: Path, tmp_path: Path
) -> None:
    method, _ = loaded(chat, tmp_path, prompt=prompt)
    texts = [text for text in TEXTS if len(text) < 100]
    if "[X]" in prompt:
        expected = theirs(chat, [prompt.replace("[X]", text) for text in texts])
    else:
        expected = theirs(chat, texts, prompt=prompt)
    np.testing.assert_allclose(method.encode(texts), expected, rtol=0, atol=2e-5)


def test_a_folder_that_was_saved_again_is_another_model(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one process, as in a notebook; and a relative name after a change of directory."""
    folder = shutil.copytree(bert, tmp_path / "a" / "model")
    before = resolve(str(folder)).revision
    other = shutil.copytree(bert, tmp_path / "b" / "model")
    tensors = load_file(other / "model.safetensors")
    changed = {name: tensor + 1 for name, tensor in tensors.items()}
    save_file(changed, other / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(other / "model.safetensors", folder / "model.safetensors")
    after = resolve(str(folder)).revision
    assert before != after == resolve(str(other)).revision
    shutil.copy(bert / "model.safetensors", other / "model.safetensors")
    revisions = []
    for place in ("a", "b"):
        monkeypatch.chdir(tmp_path / place)
        revisions.append(resolve("model").revision)
    assert revisions == [after, before]
