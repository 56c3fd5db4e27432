"""The authors' half of a parity check, for an interpreter with transformers 4.2.1.

    python peer.py JOB.json

It never runs in a process with our package. The job (written by ``parity.py``) names a checkout of
the authors' repository and a list of cases. For each case the authors' own code tokenises, collates
and masks the sentences, computes the loss of one batch and its gradients, takes one step of their
optimiser, and embeds sentences the way that their dev score and their test script do. The results
go into one .npz a case. Nothing of theirs is in this file: it looks their functions up in their
scripts by name, also those that are nested in another function, and runs them in place.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
import typing
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing
import transformers
from script import Script
from transformers.tokenization_utils_base import (
    AddedToken,
    PaddingStrategy,
    PreTrainedTokenizerBase,
)

FAMILIES = {
    "bert": ("BertForCL", transformers.BertConfig, transformers.BertModel),
    "roberta": ("RobertaForCL", transformers.RobertaConfig, transformers.RobertaModel),
}


def module(path: Path) -> Any:
    """Import a module of the authors by its path.

    Their package's __init__ needs libraries that are not used here.
    """
    spec = importlib.util.spec_from_file_location("their_" + path.stem, path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def tokenizer_of(family: str, folder: Path) -> Any:
    """Return their library's tokenizer in Python, which gives the same ids as its fast one.

    The fast one has no wheel for new Pythons.
    """
    if (
        not transformers.is_tokenizers_available()
    ):  # then the library's own stand-in for a special token does not print as text
        AddedToken.__str__ = lambda token: token.content
    if family == "bert":
        tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    else:
        tokenizer = transformers.RobertaTokenizer(
            str(folder / "vocab.json"), str(folder / "merges.txt")
        )
    # as from_pretrained does: "[MASK]" inside a text is one token
    tokenizer.sanitize_special_tokens()
    return tokenizer


class Peer:
    """Their scripts and classes, and one case after the other."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        checkout = Path(job["checkout"])
        self.train, self.evaluation = (
            Script(checkout / "train.py"),
            Script(checkout / "evaluation.py"),
        )
        self.trainers = Script(checkout / job["package"] / "trainers.py")
        self.models = module(checkout / job["package"] / "models.py")
        names = {
            **vars(typing),
            "dataclass": dataclasses.dataclass,
            "field": dataclasses.field,
            "MODEL_TYPES": (),
        }
        self.arguments = self.train.define("ModelArguments", {**names, "__name__": "theirs"})

    def run(self, case: dict[str, Any]) -> dict[str, np.ndarray]:
        torch.manual_seed(case["seed"])
        name, config_class, _ = FAMILIES[case["family"]]
        config = config_class.from_pretrained(case["backbone"])
        tokenizer = tokenizer_of(case["family"], Path(case["backbone"]))
        arguments = self.arguments(model_name_or_path=case["family"], **case["arguments"])
        model = getattr(self.models, name)(config, model_args=arguments)
        self.load(model, case)
        names = {
            **vars(typing),
            "__name__": "theirs",
            "torch": torch,
            "dataclass": dataclasses.dataclass,
            "model": model,
            "PaddingStrategy": PaddingStrategy,
            "PreTrainedTokenizerBase": PreTrainedTokenizerBase,
            "tokenizer": tokenizer,
            "model_args": arguments,
            "device": torch.device("cpu"),
            "print": lambda *_: None,
            "data_args": SimpleNamespace(
                max_seq_length=case["max_seq_length"], pad_to_max_length=False, mlm_probability=0.15
            ),
        }
        batch = self.batch(case, names)
        out = {f"batch/{key}": value.numpy() for key, value in batch.items()}
        for embedding in case["embeddings"]:
            out["embeddings/" + embedding["name"]] = self.embed(
                case, embedding, model, config, names
            )
        return out | self.step(model, share(batch), case)

    def load(self, model: torch.nn.Module, case: dict[str, Any]) -> None:
        model.to(getattr(torch, self.job["dtype"]))
        with np.load(case["weights"]) as file:
            state = {key: torch.from_numpy(file[key]) for key in file.files}
        missing, unexpected = model.load_state_dict(state, strict=False)
        # their model creates and never uses the position numbers and a pooling layer, and has an
        # LM head's bias twice
        missing = [
            key
            for key in missing
            if not key.endswith(("position_ids", "decoder.bias")) and ".pooler." not in key
        ]
        if missing or unexpected:
            sys.exit(
                f"{case['name']}: the weights do not fit their model: missing {missing}, "
                f"unexpected {unexpected}"
            )

    def batch(self, case: dict[str, Any], names: dict[str, Any]) -> dict[str, torch.Tensor]:
        """The batch as their train.py makes it of columns of sentences."""
        columns = {f"column{i}": list(column) for i, column in enumerate(case["columns"])}
        names |= {"column_names": list(columns), "sent2_cname": None}
        for node in self.train.conditions("len(column_names)"):
            self.train.run(node, names)
        templates = self.train.conditions(
            "model_args.mask_embedding_sentence\n"
        )  # Prompt-BERT: before and after
        for node in templates:
            self.train.run(node, names)
        features = self.train.define("prepare_features", names)(columns)
        rows = [
            {key: values[i] for key, values in features.items()}
            for i in range(len(case["columns"][0]))
        ]
        collator = self.train.define("OurDataCollatorWithPadding", names)(names["tokenizer"])
        return dict(collator(rows))

    def loss(
        self, model: torch.nn.Module, batch: dict[str, torch.Tensor], case: dict[str, Any]
    ) -> torch.Tensor:
        """Compute the loss by their trainer's compute_loss if it has one, else as the library's
        trainer does.
        """
        compute = self.trainers.define("compute_loss", {})
        trainer = SimpleNamespace(
            label_smoother=None,
            args=SimpleNamespace(past_index=-1),
            state=SimpleNamespace(global_step=case["step"]),
        )
        return compute(trainer, model, dict(batch)) if compute else model(**batch)["loss"]

    def step(
        self, model: torch.nn.Module, batch: dict[str, torch.Tensor], case: dict[str, Any]
    ) -> dict[str, np.ndarray]:
        model.train()
        loss = self.loss(model, batch, case)
        loss.backward()
        trained = {
            name: p
            for name, p in model.named_parameters()
            if p.requires_grad and p.grad is not None
        }
        average([loss.detach(), *(p.grad for p in trained.values())])
        out = {f"gradient/{name}": p.grad.numpy().copy() for name, p in trained.items()}
        torch.nn.utils.clip_grad_norm_(list(trained.values()), 1.0)
        transformers.AdamW(
            list(trained.values()), lr=case["learning_rate"], eps=1e-8
        ).step()  # the eps of their Trainer
        out |= {f"after/{name}": p.detach().numpy() for name, p in trained.items()}
        return {"loss": loss.detach().numpy(), **out}

    def embed(
        self, case: dict, embedding: dict, model: Any, config: Any, names: dict[str, Any]
    ) -> np.ndarray:
        """Encode the case's sentences by the trainer's batcher (dev) or evaluation.py's (test)."""
        model.eval()
        words = [sentence.split() for sentence in case["sentences"]]
        if embedding["by"] == "trainer":
            trainer = SimpleNamespace(
                tokenizer=names["tokenizer"],
                args=SimpleNamespace(device=names["device"]),
                model=model,
            )
            return self.trainers.define("batcher", {"torch": torch, "self": trainer})(
                None, words
            ).numpy()
        scope = {**names, "args": SimpleNamespace(**embedding["arguments"])}
        if not embedding["whole_model"]:
            scope["model"] = plain(case["family"], model, config)
        if embedding["arguments"].get("mask_embedding_sentence_org_mlp"):
            scope["mlp"] = model.mlp
        if embedding["arguments"].get("mask_embedding_sentence_delta"):
            delta = self.evaluation.define("get_delta", {"torch": torch})
            template, args = (
                embedding["arguments"]["mask_embedding_sentence_template"],
                scope["args"],
            )
            scope["delta"], scope["template_len"] = delta(
                scope["model"], template, scope["tokenizer"], scope["device"], args
            )
        return self.evaluation.define("batcher", scope)(None, words).numpy()


def plain(family: str, model: Any, config: Any) -> Any:
    """Return the encoder as their scripts convert a checkpoint for evaluation.py.

    The head takes the place of BERT's pooling layer.
    """
    converted = FAMILIES[family][2](config).to(next(model.parameters()).dtype)
    state = {
        name: value
        for name, value in getattr(model, family).state_dict().items()
        if not name.startswith("pooler.")
    }
    dense = getattr(getattr(model, "mlp", None), "dense", None)
    if dense is not None:
        state |= {f"pooler.dense.{name}": value for name, value in dense.state_dict().items()}
    converted.load_state_dict(state, strict=dense is not None)
    return converted.eval()


def share(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return this rank's consecutive rows of the batch; the whole batch without a process group."""
    if not dist.is_initialized():
        return batch
    return {
        key: value.chunk(dist.get_world_size())[dist.get_rank()] for key, value in batch.items()
    }


def average(numbers: list[torch.Tensor]) -> None:
    """Average over the processes, in place, as DistributedDataParallel does with gradients."""
    if not dist.is_initialized():
        return
    for tensor in numbers:
        dist.all_reduce(tensor)
        tensor /= dist.get_world_size()


def one_of_many(rank: int, peer: Peer, case: dict[str, Any]) -> None:
    """A case in one of several processes; the first one writes."""
    meeting = "file://" + case["out"] + ".meeting"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=case["processes"])
    found = peer.run(case)
    if rank == 0:
        np.savez(case["out"], **found)
    dist.destroy_process_group()


def main() -> None:
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    peer = Peer(job)
    for case in job["cases"]:
        if case["processes"] == 1:
            np.savez(case["out"], **peer.run(case))
        else:
            torch.multiprocessing.start_processes(
                one_of_many, (peer, case), case["processes"], start_method="fork"
            )
    versions = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
    }
    Path(job["versions"]).write_text(json.dumps(versions), encoding="utf-8")


if __name__ == "__main__":
    main()
