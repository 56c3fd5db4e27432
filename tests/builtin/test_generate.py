"""The built-in data: rewritten byte for byte, gold values that a parser of the sentences finds again, no overlap of splits."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.builtin.generate import DATA, HANDLINGS, KINDS, MANNERS, MEETINGS, PEOPLE, PLACES, THINGS, TIMES, generate


def read(split: str) -> list[list[str]]:
    lines = (DATA / f"check-{split}.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "sentence1\tsentence2\tgold\tkind"
    return [line.split("\t") for line in lines[1:]]


TRAIN = (DATA / "train.txt").read_text(encoding="utf-8").splitlines()
TEST, DEV = read("test"), read("dev")


def test_generating_again_gives_the_same_bytes():
    files = generate()
    assert {name: (DATA / name).read_bytes() for name in files} == files
    assert sum(map(len, files.values())) < 360_000


def test_no_wording_has_two_meanings():
    for table in (PEOPLE | THINGS, MEETINGS | HANDLINGS, PLACES | TIMES):
        words = [part for wording in chain.from_iterable(table.values()) for part in wording.split("/")]
        assert [word for word, n in Counter(words).items() if n > 1] == []
        assert all(len(wordings) >= 2 for wordings in table.values())


def meaning(sentence: str) -> dict[str, str]:
    """The concepts of a sentence, read from its words: nothing is taken from the generator but the word lists."""
    text = f" {sentence[0].lower()}{sentence[1:-1].replace(',', '')} "

    def only(table):
        found = {concept for concept, wordings in table.items() for w in wordings if f" {w} " in text}
        assert len(found) == 1, (sentence, found)
        return found.pop()

    actions = {part: concept for concept, ws in (MEETINGS | HANDLINGS).items() for w in ws for part in w.split("/")}
    nouns = {w: concept for concept, ws in (PEOPLE | THINGS).items() for w in ws}
    place, time = only(PLACES), only(TIMES)
    for wording in (*PLACES[place], *TIMES[time]):
        text = text.replace(f" {wording} ", "  ")
    words = [w for w in re.findall(r"\w+", text) if w not in MANNERS]
    people = [nouns[w] for w in words if w in nouns]
    action = [actions[w] for w in words if w in actions]
    assert len(people) == 2 and len(action) == 1, sentence
    passive = "was" in words and "by" in words
    agent, thing = people[::-1] if passive else people
    return {"agent": agent, "action": action[0], "object": thing, "place": place, "time": time}


@pytest.mark.parametrize("rows, n", [(DEV, 300), (TEST, 1000)])
def test_gold_is_the_number_of_shared_slots(rows, n):
    assert len(rows) == n
    for first, second, gold, kind in rows:
        a, b = meaning(first), meaning(second)
        assert sum(a[slot] == b[slot] for slot in a) == int(gold), (first, second)
        assert (a["agent"] == b["object"] and a["object"] == b["agent"]) == (kind == "swapped")
    graded = Counter((kind, gold) for *_, gold, kind in rows)
    assert Counter(kind for *_, kind in rows).most_common()[-1][1] >= n // 3
    for kind in KINDS:
        values = "0123" if kind == "swapped" else "012345"
        assert all(graded[kind, value] > n / 50 for value in values) and sum(graded[kind, v] for v in values) >= n // 3


def test_no_sentence_stands_in_two_places():
    assert len(TRAIN) == 4000
    everything = TRAIN + [sentence for row in DEV + TEST for sentence in row[:2]]
    assert len(set(everything)) == len(everything) == 4000 + 2 * 1300
    assert all(re.fullmatch(r"[A-Z][a-z ,]+\.", sentence) and "  " not in sentence for sentence in everything)


def test_a_bag_of_words_is_neither_blind_nor_enough():
    def words(sentence):
        return Counter(re.findall(r"\w+", sentence.lower()))

    def cosine(a, b):
        return sum(a[w] * b[w] for w in a) / np.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))

    for rows in (DEV, TEST):
        predicted = [cosine(words(a), words(b)) for a, b, *_ in rows]
        assert 40 < 100 * spearmanr(predicted, [int(row[2]) for row in rows])[0] < 60
