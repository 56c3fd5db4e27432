"""``python -m bench``: the command line, for launchers such as torchrun."""

from bench.cli import main

main(prog_name="bench")
