#!/bin/bash
# Run what is left of version 6's plans, two runs at a time, in a worktree of its own:
#
#     bash leaderboards/designs/v6/run.sh ../v6judge ../shared
#
# The same command goes on after a stop. It wants .venv with the project installed in it.
set -e
here=$PWD
python=$here/.venv/bin/python
worktree=$(realpath -m "$1")
shared=$(realpath "$2")

if [ ! -d "$worktree" ]; then
    git worktree prune
    git worktree add --detach "$worktree" main
    cd "$worktree"
    mkdir runs
    ln -s "$shared/data" data
    ln -s "$shared/models/glove/glove.6B.50d.top20k.txt.xz" .
    PYTHONPATH=$PWD $python leaderboards/designs/v6/carry.py runs
    for portion in leaderboards/designs/v6/runs-*.tar.xz; do
        tar -xJf "$portion" -C runs --strip-components=1
    done
fi

cd "$worktree"
export PYTHONPATH=$PWD OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 HF_HUB_OFFLINE=1
run_plan() { nice -n 19 $python -m bench run --plan "leaderboards/designs/v6/$1.toml" --plain "${@:2}"; }

for plan in 7-ablations-conpvp 7-ablations-focal 4-mlm; do run_plan $plan --on local:2; done
