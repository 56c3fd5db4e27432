"""``bench backbones``: what a method can start from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from bench.base.errors import BenchError
from bench.cli.columns import print_columns, title
from bench.cli.options import json_option, json_text

if TYPE_CHECKING:
    from bench.backbones import Reference


@click.command()
@click.argument("name", required=False)
@click.option("--fetch", "fetching", is_flag=True, help="Fetch it from the hub, if it is not here.")
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Load it: which weights are missing or unused, what methods can do with it.",
)
@click.option(
    "--allow-pickle",
    is_flag=True,
    help="Take weights that are a pickle: its tensors are read, nothing else.",
)
@json_option
def backbones(
    name: str | None, fetching: bool, checking: bool, allow_pickle: bool, as_json: bool
) -> None:
    """List the known backbones, or show one: a name of the list, a folder, or any hub name (owner/name, owner/name@revision).

    \b
    Example:  bench backbones builtin --check
    """
    from bench.backbones import KNOWN, fetch, resolve

    if name is None:
        rows = [
            (known, "here" if resolve(known).path else "fetched when needed", about)
            for known, about in KNOWN.items()
        ]
        if as_json:
            click.echo(json_text([{"name": n, "state": s, "about": a} for n, s, a in rows]))
            return
        print_columns(rows, headings=("backbone", "files", "what it is"))
        title(
            "A folder with config.json and model.safetensors, and any encoder of the hub, is a backbone too."
        )
        return
    reference = resolve(name, allow_pickle=allow_pickle)
    if fetching or checking:
        say = partial(click.echo, err=True)
        reference = fetch(reference, offline=not fetching, allow_pickle=allow_pickle, say=say)
    facts = describe(name) | (abilities(reference) if checking else {})
    if as_json:
        click.echo(json_text(facts))
    else:
        print_columns([(key, str(value)) for key, value in facts.items()])


def abilities(reference: Reference) -> dict[str, object]:
    """What shows when a backbone is loaded."""
    from bench.backbones import load
    from bench.backbones.families import FAMILIES, check_mlm_head

    backbone = load(reference, offline=True)
    family = FAMILIES.get(backbone.family)
    try:
        check_mlm_head(backbone.weights or backbone.path)
        head = "yes"
    except BenchError:
        head = "no"
    prompt = "not known"
    if family is not None:
        prompt = "yes" if family.prefix else "no"
    before, after = backbone.special_tokens()
    tokens = backbone.tokenizer.convert_ids_to_tokens(
        [*before, *backbone.ids(["A sentence."])[0], *after]
    )
    return {
        "weights": backbone.report(),
        "a sentence in its tokens": " ".join(tokens),
        "MLM head": head,
        "deep prompt": prompt,
    }


def describe(name: str) -> dict[str, object]:
    """Everything that is known of a backbone without loading it."""
    from bench.backbones import KNOWN, builtin_folder, resolve, transformer_folder
    from bench.backbones.families import own_dropout, read_config
    from bench.method import read_json

    reference = resolve(name)
    facts: dict[str, object] = {
        "name": name,
        "about": KNOWN.get(name, ""),
        "revision": reference.revision,
    }
    if reference.path is None:
        return {**facts, "files": "not on this machine; fetched when a run needs it"}
    folder = transformer_folder(reference.path)
    config = read_config(folder)
    facts |= {
        "files": str(folder),
        "family": config.get("model_type"),
        "layers": config.get("num_hidden_layers"),
        "hidden size": config.get("hidden_size"),
        "vocabulary": config.get("vocab_size"),
        "positions": config.get("max_position_embeddings"),
        "dropout": own_dropout(config),
    }
    if name == "builtin":
        card = read_json(builtin_folder() / "card.json")
        held_out = card["held_out"]
        facts |= {
            "parameters": card["parameters"],
            "pretrained on": f"{card['sentences_seen']} sentences of {card['corpus']['file']}",
            "held-out MLM": f"loss {held_out['loss']:.3f} nats, accuracy {100 * held_out['accuracy']:.1f} %",
            "made": f"{card['date']}, {card['seconds']} s on {card['hardware']}",
        }
    return {key: value for key, value in facts.items() if value not in (None, "")}
