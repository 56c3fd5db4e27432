"""The papers' sets, read from their raw files as their own pages and SentEval's code say."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

Pairs = tuple[list[str], list[str], list[float]]

SUBSETS = {
    "STS12": ["MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"],
    "STS13": ["FNWN", "headlines", "OnWN"],
    "STS14": ["deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"],
    "STS15": ["answers-forums", "answers-students", "belief", "headlines", "images"],
    "STS16": ["answer-answer", "headlines", "plagiarism", "postediting", "question-question"],
}
TRACKS = {
    "ar-ar": "track1.ar-ar",
    "ar-en": "track2.ar-en",
    "es-es": "track3.es-es",
    "es-en": "track4a.es-en",
    "es-en-WMT": "track4b.es-en",
    "en-en": "track5.en-en",
    "tr-en": "track6.tr-en",
}
LANGUAGES = ["en", "de", "es", "fr", "it", "ja", "nl", "pl", "pt", "ru", "zh"]
SIDES = {
    "MR": ("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": ("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
    "MPQA": ("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}
QUESTIONS = ["ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"]


def joined(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """Return the lines of a file, which end with a line feed and nothing else."""
    return path.read_bytes().decode(encoding).removesuffix("\n").split("\n")


def rated(inputs: Path, ratings: Path) -> Pairs:
    """Read an organisers' pair of files; pairs without a rating are dropped."""
    rows = zip(lines(inputs), lines(ratings), strict=False)
    kept = [(row.split("\t"), gold) for row, gold in rows if gold.strip()]
    first, second = ([joined(row[side]) for row, _ in kept] for side in (0, 1))
    return first, second, [float(gold) for _, gold in kept]


def sts(data: Path, task: str) -> Pairs:
    """Read one of the seven English sets in the text that SentEval's script leaves."""
    folder = data / "senteval-moses" / "downstream"
    if task in SUBSETS:
        files = folder / "STS" / f"{task}-en-test"
        parts = [
            rated(files / f"STS.input.{one}.txt", files / f"STS.gs.{one}.txt")
            for one in SUBSETS[task]
        ]
        first, second, gold = (sum((part[side] for part in parts), []) for side in range(3))
        return first, second, gold
    if task == "STS-B":
        rows = [row.split("\t") for row in lines(folder / "STS/STSBenchmark/sts-test.csv")]
        columns = (5, 6, 4)
    else:
        rows = [row.split("\t") for row in lines(folder / "SICK/SICK_test_annotated.txt")[1:]]
        columns = (1, 2, 3)
    first, second, gold = ([row[column] for row in rows] for column in columns)
    return [joined(one) for one in first], [joined(one) for one in second], [*map(float, gold)]


def sts_multi(data: Path, task: str) -> Pairs:
    """Read a track of SemEval-2017, or STS-B's test split in a language."""
    if task in TRACKS:
        folder = data / "sts-multi" / "sts17"
        return rated(
            folder / f"STS.input.{TRACKS[task]}.txt", folder / f"STS.gs.{TRACKS[task]}.txt"
        )
    file = data / "sts-multi" / "stsb" / f"stsb-{task}-test.csv"
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.reader(opened))
    return [joined(r[0]) for r in rows], [joined(r[1]) for r in rows], [float(r[2]) for r in rows]


def captions(data: Path) -> dict[str, list[str]]:
    """Read the columns of CxC's test pairs."""
    head, *rows = (row.split("\t") for row in lines(data / "cxc" / "sts_test.tsv"))
    return {name: [row[place] for row in rows] for place, name in enumerate(head)}


def topics(data: Path, task: str) -> tuple[list[str], np.ndarray]:
    """Read the texts of a clustering set and their topics."""
    rows = [row.split("\t", 1) for row in lines(data / "clustering" / f"{task}.tsv")]
    return [joined(text) or "." for _, text in rows], np.array([topic for topic, _ in rows])


def labelled(data: Path, task: str) -> dict[str, tuple[list[list[str]], np.ndarray]]:
    """Read a transfer set: split -> its texts (two of a pair) and labels, in SentEval's order."""
    folder = data / "senteval-moses" / "downstream"
    if task in SIDES:
        positive, negative = (
            (folder / file).read_text(encoding="latin-1").splitlines() for file in SIDES[task]
        )
        texts = [[joined(text)] for text in (*positive, *negative)]
        return {"all": (texts, np.repeat([1, 0], [len(positive), len(negative)]))}
    splits = {}
    if task == "SST-2":
        for split in ("train", "dev", "test"):
            rows = [row.split("\t") for row in lines(folder / f"SST/binary/sentiment-{split}")]
            splits[split] = ([[joined(r[0])] for r in rows], np.array([int(r[1]) for r in rows]))
    elif task == "TREC":
        for split, name in (("train", "train_5500"), ("test", "TREC_10")):
            rows = [row.split(":", 1) for row in lines(folder / f"TREC/{name}.label", "latin-1")]
            texts = [[joined(rest.split(" ", 1)[1])] for _, rest in rows]
            splits[split] = (texts, np.array([QUESTIONS.index(label) for label, _ in rows]))
    else:
        for split in ("train", "test"):
            rows = [r.split("\t") for r in lines(folder / f"MRPC/msr_paraphrase_{split}.txt")[1:]]
            texts = [[joined(row[3]), joined(row[4])] for row in rows]
            splits[split] = (texts, np.array([int(row[0]) for row in rows]))
    return splits
