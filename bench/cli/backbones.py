"""``bench backbones``: what a method can start from."""

from __future__ import annotations

import json

import click

from bench.cli.options import json_option


@click.command()
@click.argument("name", required=False)
@json_option
def backbones(name: str | None, as_json: bool) -> None:
    """List the known backbones, or show one: a name of the list, a folder, or any hub name.

    \b
    Example:  bench backbones builtin
    """
    from bench.backbones import KNOWN, resolve
    from bench.cli.columns import print_columns

    if name is None:
        rows = [(known, "here" if resolve(known).path else "fetched when needed", about) for known, about in KNOWN.items()]
        if as_json:
            click.echo(json.dumps([{"name": n, "state": s, "about": a} for n, s, a in rows]))
            return
        print_columns(rows, headings=("backbone", "files", "what it is"))
        click.echo("\nA folder with config.json and model.safetensors, and any encoder of the hub, is a backbone too.")
        return
    facts = describe(name)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        print_columns([(key, str(value)) for key, value in facts.items()])


def describe(name: str) -> dict[str, object]:
    """Everything that is known of a backbone without loading it."""
    from bench.backbones import KNOWN, builtin_folder, resolve, transformer_folder
    from bench.method import read_json

    reference = resolve(name)
    facts: dict[str, object] = {"name": name, "about": KNOWN.get(name, ""), "revision": reference.revision}
    if reference.path is None:
        return {**facts, "files": "not on this machine; fetched when a run needs it"}
    folder = transformer_folder(reference.path)
    config = read_json(folder / "config.json")
    facts |= {"files": str(folder), "family": config.get("model_type"), "layers": config.get("num_hidden_layers"),
              "hidden size": config.get("hidden_size"), "vocabulary": config.get("vocab_size"),
              "positions": config.get("max_position_embeddings"), "dropout": config.get("hidden_dropout_prob")}  # fmt: skip
    if name == "builtin":
        card = read_json(builtin_folder() / "card.json")
        held_out = card["held_out"]
        facts |= {"parameters": card["parameters"], "pretrained on": f"{card['sentences_seen']} sentences of {card['corpus']['file']}",
                  "held-out MLM": f"loss {held_out['loss']:.3f} nats, accuracy {100 * held_out['accuracy']:.1f} %",
                  "made": f"{card['date']}, {card['seconds']} s on {card['hardware']}"}  # fmt: skip
    return {key: value for key, value in facts.items() if value not in (None, "")}
