"""Mistakes whose lines suggest a command or an option, and suggestions that no mistake prints here.

$A, $B and $C are runs of simcse, promcse and cls in the folder ``kept``.
"""

from __future__ import annotations

from suggested import VALUE

ON = "--corpus corpus.txt --suite pairs.tsv"
TINY = f"--backbone tiny {ON}"
LAST = "--dry-run --set select_on=last"
SHORT = "--runs new-runs --budget 2steps"
GRADED = "--setting supervised --corpus triplets.csv --suite pairs.tsv"
TRIPLETS = "--backbone tiny --corpus triplets.csv --suite pairs.tsv"
SEARCH = "--backbone tiny --corpus corpus.txt --dry-run"
LONG = "many words of a long prompt " * 12

CASES = (
    "runs nobody",
    f"run simcse --set edit=deletion {TRIPLETS} --setting supervised {LAST}",
    f"run promcse --set prompt=input-layer --set mlm=true {TINY} {LAST}",
    f"run conpvp --set prompt_length=0 {TINY} {LAST}",
    f"run consert --set rate1=2 {TINY} {LAST}",
    f"run consert --set classifier=true {TINY} {LAST}",
    f"run dclr {TINY} {LAST}",
    f"run prompteol --set template=nothing --backbone llama {GRADED} {LAST}",
    f"run flow --set levels=99 --set select_on=last {TINY} {SHORT}",
    f"run infersent --set vectors=nothing.txt {TINY} {LAST}",
    f"run mirror-bert --set drophead=2 {TINY} {LAST}",
    f"run mntp --set mask_probability=2 {TINY} {LAST}",
    f"run pcl --set share=2 {TINY} {LAST}",
    f"run promcse --set gradient_checkpointing=true {TINY} {LAST}",
    f"run matryoshka --set matryoshka=many {TINY} {LAST}",
    f"run prompteol --set demonstration=one --backbone llama {GRADED} {LAST}",
    f"run simcse --set edit_share=2 {TINY} {LAST}",
    f"run simcse --set eh=true --set hard_negatives=false {TRIPLETS} --setting supervised {LAST}",
    f"run tsdae --set deletion=2 {TINY} {LAST}",
    f"run unsee --set momentum=2 {TINY} {LAST}",
    f"run whitening --set components=0 {TINY} --dry-run",
    f"run simcse --backbone dry {ON} {LAST}",
    f"run esimcse --set queue_size=-1 {TINY} {LAST}",
    f"run simcse --set lora_rank=4 {TINY} {LAST}",
    f"run simcse --set adapter=same {TINY} {LAST}",
    f"run simcse --set adapter=same --set lora_rank=4 --backbone 'kept/$A' {ON} {LAST}",
    f"run simcse --set base_dtype=bf16 {TINY} {LAST}",
    f"run simcse --set adapter=lora --set lora_targets=nothing --set select_on=last {TINY} {SHORT}",
    f"run simcse --corpus hub:one --backbone tiny --suite pairs.tsv {LAST}",
    f"run simcse --only nothing --on local:2 {TINY} {LAST}",
    f"run simcse --on commands {TINY} {LAST}",
    f"run simcse --on commands --json {TINY} --set select_on=last",
    f"run simcse --to new.toml {TINY} --set select_on=last",
    f"run simcse --budget 1gpu-h {TINY} {LAST}",
    f"run simcse --precision fp16 --device cpu {TINY} {LAST}",
    f"run simcse --suite simcse --backbone tiny --corpus corpus.txt {LAST}",
    f"run simcse --suite STS-B --backbone tiny --corpus corpus.txt {LAST}",
    f"run simcse --suite mteb: --backbone tiny --corpus corpus.txt {LAST}",
    "run --paper promcse:9 --dry-run",
    "run odd.toml --suite pairs.tsv",
    "run builtin --suite pairs.tsv",
    "run recipe.toml --dry-run --seeds 1 --suite pairs.tsv",
    "search",
    f"search simcse {SEARCH} --set temperature=0.1 --space temperature=0.1,0.2",
    f"search simcse {SEARCH} --space temperature=some",
    f"search simcse {SEARCH} --space max_steps=1,2",
    "evaluate tiny --suite pairs.tsv --dimensions 999",
    "compare --runs kept --paper promcse:1",
    "compare --runs kept $A $B --format csv --items",
    "compare --runs kept --top 5",
    "compare --runs kept --strict",
    "export --runs kept $A --to new --unmerged",
    "publish --runs kept --out empty --check",
    "publish --out empty --check",
    "check 'kept/$A/plan.toml'",
    "publish --runs kept --out boards --submissions nowhere",
    "publish --runs kept --out boards --main-budget 9steps",
    "methods --all",
    "papers --kind average",
    "papers checkpoints --remarks",
    "doctor --fetch",
    "run contrastive-prompting --backbone llama --set steered_layer=0 --dry-run --suite pairs.tsv",
    f"run mntp --backbone llama --set attention=none {ON} {LAST}",
    f"run rankcse --set teacher_1=none {TINY} {LAST}",
    f"run simcse --set fixed_dropout=true --set edit=deletion {TINY} {LAST}",
    "run stored-prefix --dry-run --backbone tiny --suite pairs.tsv",
    "run token-prepending --backbone llama --set first_layer=9 --set last_layer=2 --dry-run --suite pairs.tsv",
    "run truncated --set pooling=mean --dry-run --backbone tiny --suite pairs.tsv",
    f"run whitening --set components=99 {TINY} --runs new-runs",
    "run whitening --corpus few.txt --backbone tiny --suite pairs.tsv --runs new-runs",
    f"run simcse --setting unsupervised {TRIPLETS} {LAST}",
    f"run simcse --corpus corpus.txt --corpus triplets.csv --backbone tiny --suite pairs.tsv {LAST}",
    f"run simcse --corpus sha256:0000 --backbone tiny --suite pairs.tsv {LAST}",
    f"run simcse --suite a:b=pairs.tsv --backbone tiny --corpus corpus.txt {LAST}",
    f"run simcse --precision tf32 --device cpu {TINY} {LAST}",
    f"run simcse --on torchrun --device cpu {TINY} {LAST}",
    f"run simcse --backbone a=tiny,a=llama {ON} {LAST}",
    f"run simcse --paper promcse:1 --plan 'kept/$A/plan.toml' {TINY} {LAST}",
    f"run corpus.txt --dry-run {TINY}",
    f"search simcse {SEARCH} --sampler grid --trials 99 --space temperature=0.1,0.2",
    "evaluate tiny --suite pairs.tsv --set pooling=mean --dimensions 999",
    "evaluate tiny --suite pairs.tsv --set pooling=mean --set max_length=9999",
    "evaluate 'kept/$A' --suite pairs.tsv --fresh",
    "evaluate 'kept/$A' --suite pairs.tsv --prefix query:",
    f"run simcse --backbone 'kept/$C' --dry-run {ON}",
    "compare --runs kept --json --format csv",
    "evaluate tiny --suite retrieval:kept --set pooling=mean",
    "data fetch STS12",
    f"run simcse --backbone pickled --dry-run {ON}",
    "submit --runs kept $A --by Ada --to box",
    "verify leaderboards/v4",
    "compare --runs kept --why cls",
    "compare --runs kept --why nobody",
    f"run unsee --set select_on=last --set batch_size=1 {TINY} {SHORT}",
    f"run unsee --set select_on=last --set batch_size=199 --set epochs=1 --runs new-runs {TINY}",
    f"run unsee --set select_on=last --set duplicates=drop --runs new-runs {TINY}",
    "run cls --backbone llama --suite pairs.tsv --dry-run",
    f"run simcse --backbone dry --set adapter=lora {ON} {LAST}",
    "evaluate tiny --suite pairs.tsv --set pooling=mean --prompt nothing x",
    f"run simcse --set batch_size=1, --dry-run {TINY}",
    f"search simcse {SEARCH} --select last",
    f"run simcse --set select_on=last --on slurm:cpus=2 {TINY}",
    "run embedfilter --backbone llama --suite pairs.tsv --set drop_first=20 --set drop_last=20",
    f"run promcse+eh --setting unsupervised {TINY} {LAST}",
    f"run guided-simcse {TRIPLETS} --set guide=tiny --set mask=gist --set faithful=true {LAST}",
    f"run guided-simcse {TRIPLETS} --set guide=none {LAST}",
    "run glove-avg --suite pairs.tsv --set vectors=none --dry-run",
    f"run mntp --backbone llama --set select_on=last --set mask_text= {ON} {SHORT}",
    "run prompteol --backbone llama --setting none --set layer=99 --suite pairs.tsv",
    "run stored-prefix --set pooling=cls --backbone tiny --suite pairs.tsv --runs new-runs",
    "run token-prepending --backbone llama --set 'template=[X]' --suite pairs.tsv --dry-run",
    f"evaluate tiny --suite pairs.tsv --set pooling=mean --prefix '{LONG}'",
)
"""Commands that end with an error and a suggestion."""

NOT_TRIED = ("--backbone kept/cls", "question,answer --dry-run", "kept --paper promcse:1")
"""Parts of commands that work elsewhere: with a trained run, pairs to train on, the paper's scores."""

NEEDS = {
    "a folder of weights that is out of the ordinary": (
        ("bench/backbones/dropout.py", "leave --set dropout= out, or take a backbone of"),
        ("bench/backbones/loading.py", "a PromCSE or DCPCSE checkpoint: bench run"),
        ("bench/backbones/loading.py", "bench evaluate scores it as it is; to train, or"),
        ("bench/backbones/loading.py", "bench evaluate scores it as it is; to train, or"),
    ),
    "bitsandbytes and a GPU": (("bench/backbones/four_bit.py", "--set base_dtype=bf16"),),
    "the hub: tests/cli/test_backbone_names.py": (
        ("bench/backbones/hub.py", "--backbone {}; or, for a model that is not"),
        ("bench/backbones/hub.py", "hf download {} --local-dir FOLDER, and give"),
    ),
    "a GPU, or another torch": (
        ("bench/base/devices.py", "{}, for cards from 5.0 to 9.0; or --device cpu"),
        ("bench/base/devices.py", "--device cuda:{}"),
        ("bench/base/devices.py", "--precision fp16 or fp32"),
        ("bench/base/devices.py", "pip install torch=={} from PyPI, or --device cpu"),
        ("bench/base/devices.py", "update the driver, or {}, or --device cpu"),
    ),
    "a launcher of processes": (
        ("bench/base/launched.py", "unset {}; --on torchrun:2 sets it"),
        ("bench/method/ranks.py", "for one process: unset RANK WORLD_SIZE; for"),
    ),
    "a pipe in the place of a file": (
        ("bench/base/reading.py", "remove it, or choose another folder: --runs DIR"),
    ),
    "a damaged version or submission": (
        ("bench/board/board.py", "bench run ... --suite sts, then bench publish"),
        ("bench/board/publish/submissions.py", "bench submit RUN --suite NAME leaves other"),
        ("bench/board/publish/versions.py", "bench publish --check names every file; restore"),
    ),
    "a file of another run": (
        ("bench/cli/selection.py", "the file that was scored, with the same kind"),
    ),
    "runs that share no score": (
        ("bench/compare/items.py", "bench runs RUN"),
        ("bench/compare/tables.py", "bench run ... --suite sts"),
    ),
    "a network, or a damaged data folder": (
        ("bench/data/corpora/corpus.py", "name one: --corpus {}"),
        ("bench/data/fetching.py", "bench data list NAME shows other sources, and"),
        ("bench/data/sets/folder.py", "--data DIR or BENCH_DATA; {}"),
        ("bench/data/sets/folder.py", "--data DIR, the folder that has it"),
        ("bench/data/sets/folder.py", "to get the {} text: {}; raw texts have"),
        ("bench/data/sets/manifest.py", "bench data list shows all of them"),
        ("bench/run/needs.py", "--data DIR, if a folder has them; or {}"),
    ),
    "a run with an adapter, or a fault of a method": (
        ("bench/export/adapter.py", "leave --unmerged out: the weights of this run,"),
        ("bench/export/adapter.py", "leave --unmerged out; or export that run and"),
        ("bench/export/vectors.py", "this is a bug in bench or in the method's"),
    ),
    "several processes, or an encoder out of the ordinary": (
        ("bench/method/encoder_recipe.py", "--set base_dtype=bf16 on several, or one"),
        ("bench/method/encoder_values.py", "leave {} out, or name the pooling: --set"),
        ("bench/method/encoder_values.py", "leave it out; --chunk N holds the activations"),
    ),
    "a run of a method that is not here": (
        ("bench/method/plugins.py", "--plugin {}"),
        ("bench/method/plugins.py", "{} in place of {}, or --plugin {}"),
        ("bench/method/plugins.py", "in Python, plugins=[the class]; or write it"),
        ("bench/method/plugins.py", "install it, or --plugin FILE"),
    ),
    "several GPUs": (("bench/method/ranks.py", "--device cuda or --device cpu"),),
    "a recipe of a search": (
        ("bench/method/recipe_files.py", "--seeds 1-5, or other seeds that the search did"),
    ),
    "a damaged folder of runs or searches": (
        ("bench/records/copies.py", "name one of them; bench runs FOLDER shows what"),
        ("bench/records/searches.py", "restore it, or start another search with --name"),
    ),
    "a damaged run, or data that are not here": (
        ("bench/run/dev_sets.py", "{}; or --set 'select_on=captions dev', which is"),
        ("bench/run/execute.py", "the same command with --fresh trains it again"),
        ("bench/run/finished.py", "bench verify computes its scores again"),
        ("bench/run/paper_plan.py", "bench papers {}: what can be"),
    ),
    "a damaged search": (
        ("bench/run/search/study.py", "--space KEY=A,B,C, or --space KEY=LOW..HIGH"),
        ("bench/run/search/worker.py", "--name NEW begins another one; {} in the folder"),
    ),
    "a GPU": (("bench/run/settle.py", "use --device cuda, or gpus=N in --on, to"),),
    "a cluster": (("bench/run/slurm.py", "sinfo shows what the cluster has; gpus, cpus,"),),
    "a training that diverges": (
        ("bench/score/suites/vectors.py", "the training diverged, or the backbone's"),
    ),
    "a training that goes wrong": (
        ("bench/training/distinct.py", "a smaller batch_size, --set drop_last=false, or"),
        ("bench/training/gradient.py", "omit --chunk and --on torchrun, or define"),
        ("bench/training/loop.py", "--chunk {}: the same command with it goes on"),
        ("bench/training/memory.py", "free memory on the device, or --device cpu"),
        ("bench/training/state_files.py", "free disk space, or another --runs"),
        ("bench/training/trainer.py", "look at these rows if it is the first step;"),
    ),
    "a tokenizer or an encoder out of the ordinary": (
        ("methods/cse_sfp.py", "another --set template= and --set pivot="),
        ("methods/filled.py", "take another backbone: bench doctor NAME says"),
        ("methods/prefix.py", "--set prompt=deep, or a backbone of the BERT or"),
        ("methods/pretrained.py", "bench evaluate {} scores the run itself; or"),
    ),
}
"""What errors need that the commands above do not make -> files, and beginnings of suggestions."""

NOT_HERE = [(file, text.replace("{}", VALUE)) for here in NEEDS.values() for file, text in here]
