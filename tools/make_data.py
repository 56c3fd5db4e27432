"""Make the data that the package carries, out of the files that it was taken from.

What it is, and its licences: README.md here.

    python tools/make_data.py sts_val.tsv wiki_sentences.txt.xz

It rewrites bench/builtin/data/, with the same bytes every time.

``sts_val.tsv`` is Crisscrossed Captions' validation pairs with their captions,
``wiki_sentences.txt.xz`` a million sentences of English Wikipedia, one a line. Their sha256 are
checked.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.base.errors import BenchError
from bench.base.files import write_whole
from bench.data.reading.lines import read_lines
from bench.data.sets.cxc import SAME_IMAGE, images


def letters(texts: Sequence[str]) -> str:
    """Hash the letters and digits of a text, which no tokenizer changes (punctuation it may)."""
    plain = ("".join(filter(str.isalnum, text)).lower() for text in texts)
    return hashlib.sha256("\n".join(plain).encode()).hexdigest()


DATA = Path(__file__).parents[1] / "bench" / "builtin" / "data"
SOURCES = {  # sha256 of the decompressed content
    "sts_val.tsv": "48b0bbbc14905b6cb8d31d509d62a9a8cd67ab70612b654d67622f99c5041e12",
    "wiki_sentences.txt.xz": "7bb33adc70606ee053483bde71aadc22df5765a2bccad25b6d65520488529521",
}
COLUMNS = ("caption1_id", "caption2_id", "score", "sampling_method", "sentence1", "sentence2")
HEADER = "sentence1\tsentence2\tgold\tkind\tcaption1\tcaption2"
DEV_IMAGES = 200
LARGEST = 20
"""Images of a group that may be in the dev part; a larger one would be most of it."""
SENTENCES = 10_000
WORDS = (6, 20)
"""Fewest and most white-space separated words of a sentence: SimCSE reads 32 word pieces."""
COMMON = frozenset(
    (
        "the",
        "of",
        "and",
        "in",
        "to",
        "a",
        "is",
        "was",
        "for",
        "on",
        "as",
        "with",
        "by",
        "at",
        "from",
        "that",
        "his",
        "her",
        "it",
        "were",
        "are",
        "an",
        "which",
        "be",
    )
)
ODD = re.compile(r"https?:|www\.|\(\s*[),;]|[\[\]{}|<>*]|\s{2}")
"""What is left where a template or a link was taken out."""

Pair = Sequence[str]


def parts(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Return the pairs of the dev and the test part, in the order of the source; no caption or
    image is in both.

    Images form a group if a pair between them was rated, or if they share a caption but for
    punctuation and case. Groups are taken in the order of the sha256 of their smallest caption
    number, without those of more than ``LARGEST`` images; each goes to the dev part if that then
    has no more than ``DEV_IMAGES`` images. All others form the test part.
    """
    captions = list(dict.fromkeys(caption for pair in pairs for caption in pair[:2]))
    rings = [(first, second) for first, second, _, kind, *_ in pairs if kind == SAME_IMAGE]
    image = dict(zip(captions, images(captions, rings).tolist(), strict=True))
    text = {caption: letters([pair[4 + i]]) for pair in pairs for i, caption in enumerate(pair[:2])}
    group = _groups(
        [
            *((image[a], image[b]) for a, b, *_ in pairs),
            *((image[caption], text[caption]) for caption in captions),
        ],
    )
    members: dict[object, set[int]] = {}
    smallest: dict[object, int] = {}
    for caption in captions:
        of = group[image[caption]]
        members.setdefault(of, set()).add(image[caption])
        smallest[of] = min(smallest.get(of, number(caption)), number(caption))
    dev: set[int] = set()
    for of in sorted(members, key=lambda one: hashlib.sha256(str(smallest[one]).encode()).digest()):
        if len(members[of]) <= LARGEST and len(dev) + len(members[of]) <= DEV_IMAGES:
            dev |= members[of]
    return {
        "dev": [pair for pair in pairs if image[pair[0]] in dev],
        "test": [pair for pair in pairs if image[pair[0]] not in dev],
    }


def _groups(ties: Iterable[tuple[object, object]]) -> Mapping[object, object]:
    """Join everything that is tied together, directly or not, under one name (union-find)."""
    above: dict[object, object] = {}

    def top(one: object) -> object:
        while above.setdefault(one, one) != one:
            above[one] = above[above[one]]
            one = above[one]
        return one

    for a, b in ties:
        above[top(a)] = top(b)
    return {one: top(one) for one in list(above)}


def number(caption: str) -> int:
    """Return COCO's number of a caption: 290157 for "COCO_val2014:sentid:290157"."""
    return int(caption.rsplit(":", 1)[1])


def chosen(lines: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return the training sentences: whole English sentences of ordinary length with the smallest
    sha256, in that order.

    If lines are alike but for punctuation and case, the first is taken, and none that is one of
    ``taken``.
    """
    fitting = sorted(
        (line for line in lines if fits(line)),
        key=lambda line: hashlib.sha256(line.encode()).digest(),
    )
    seen = {letters([one]) for one in taken}
    found: list[str] = []
    for line in fitting:
        if (key := letters([line])) not in seen:
            seen.add(key)
            found.append(line)
        if len(found) == SENTENCES:
            break
    return found


def fits(line: str) -> bool:
    """Say if a line is a whole English sentence, by length, end, common words, and no remains of
    markup.
    """
    words = line.split(" ")
    return (
        WORDS[0] <= len(words) <= WORDS[1]
        and line[0].isupper()
        and line.endswith((".", "!", "?", '."'))
        and line.count('"') % 2 == 0
        and line.count("(") == line.count(")")
        and not ODD.search(line)
        and len(COMMON.intersection(word.lower() for word in words)) >= 2
    )


def make(pairs_file: Path, sentences_file: Path) -> dict[str, bytes]:
    """Return file name -> content, before compression.

    Raises BenchError for a file other than the original.
    """
    header, *lines = _checked(pairs_file, SOURCES["sts_val.tsv"])
    if tuple(header.split("\t")) != COLUMNS:
        raise BenchError(f"{pairs_file}: its columns are not {', '.join(COLUMNS)}")
    pairs = [line.split("\t") for line in lines]
    files = {}
    for name, rows in parts(pairs).items():
        told = [
            (*row[4:6], row[2], row[3], str(number(row[0])), str(number(row[1]))) for row in rows
        ]
        files[f"check-{name}.tsv"] = [HEADER, *("\t".join(row) for row in told)]
    captions = (pair[i] for pair in pairs for i in (4, 5))
    files["sentences.txt"] = chosen(
        _checked(sentences_file, SOURCES["wiki_sentences.txt.xz"]), captions
    )
    return {name: ("\n".join(rows) + "\n").encode() for name, rows in files.items()}


def _checked(path: Path, sha256: str) -> list[str]:
    digest = hashlib.sha256()
    lines = list(read_lines(path, digest.update))
    if digest.hexdigest() != sha256:
        raise BenchError(
            f"{path}: its content has the sha256 {digest.hexdigest()}; "
            f"the data was made of {sha256}"
        )
    return lines


def compress(content: bytes) -> bytes:
    """Compress as xz.

    The bytes are the same from one version of liblzma to the next, as long as its encoder does not
    change.
    """
    return lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python tools/make_data.py", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("pairs", type=Path, help="sts_val.tsv")
    parser.add_argument("sentences", type=Path, help="wiki_sentences.txt.xz")
    parser.add_argument(
        "--out", type=Path, default=DATA, help="folder to write to (default: the package's own)"
    )
    asked = parser.parse_args(argv)
    for name, content in make(asked.pairs, asked.sentences).items():
        stored = compress(content)
        write_whole(asked.out / f"{name}.xz", stored)
        print(
            f"{name}.xz: {len(content.splitlines()):,} lines, {len(stored):,} bytes, "
            f"content sha256 {hashlib.sha256(content).hexdigest()}"
        )


if __name__ == "__main__":
    main()
