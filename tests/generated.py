"""1,000 sentence pairs of a small grammar, and how they are scored: the suite ``check`` of an earlier bench, protocol ``check/1``.

Records of that protocol exist and are verified against the hashes that bench keeps of its gold values. Tests need such
records in numbers, and these are scored in a moment.

A sentence tells one event with five slots: agent, action, object, place, time. Each slot is filled by a concept, and each
concept has two or more wordings. The gold value of a pair is the number of slots (0 to 5) that both sentences fill with the
same concept; wording, voice, word order, article and adverb do not count.
"""

from __future__ import annotations

import functools
import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bench.score.suites import TaskResult, Vectors
from bench.score.suites.check import GENERATED
from bench.score.suites.sts import cosines, score_predictions

SIZES = {"dev": 300, "test": 1000}
SEEDS = {"dev": 11, "test": 12}
KINDS = ("reworded", "close", "swapped")  # what they are: see `pair`
SLOTS = ("agent", "action", "object", "place", "time")

Event = Mapping[str, str]  # slot -> concept; a concept is named by its first wording


def _concepts(text: str) -> dict[str, tuple[str, ...]]:
    """Concepts are separated by ";", the wordings of one by ","; the first wording is the concept's name."""
    wordings = [tuple(w.strip() for w in concept.split(",")) for concept in text.split(";")]
    return {words[0]: words for words in wordings}


PEOPLE = _concepts(
    "doctor, physician, medic; teacher, instructor, schoolmaster; child, kid, youngster; policeman, cop, constable;"
    "lawyer, attorney, solicitor; farmer, grower; cook, chef; soldier, trooper, fighter; manager, boss, supervisor;"
    "student, pupil, learner; thief, robber, burglar; friend, companion, buddy; writer, author, novelist; singer, vocalist;"
    "driver, motorist, chauffeur; scientist, researcher; sailor, seaman, mariner; king, monarch, ruler;"
    "priest, clergyman, vicar; woman, lady; beggar, tramp; guest, visitor; judge, magistrate; actor, performer"
)
THINGS = _concepts(
    "car, automobile; letter, message, note; picture, photograph, image; boat, ship, vessel; bicycle, bike; coat, jacket;"
    "box, crate, chest; knife, blade, dagger; book, volume, novel; stone, rock; money, cash; computer, laptop; rug, carpet;"
    "sofa, couch; cup, mug; gift, present; bag, sack, suitcase; lamp, lantern; gun, pistol, weapon; map, chart"
)
# a wording whose participle differs is written past/participle
MEETINGS = _concepts(
    "helped, assisted, aided; followed, trailed, shadowed; praised, commended, applauded; scolded, rebuked, reprimanded;"
    "greeted, welcomed; deceived, tricked, fooled; rescued, saved; watched, observed; phoned, called, rang/rung;"
    "hired, employed, recruited; taught, trained, educated; insulted, offended; questioned, interrogated, quizzed;"
    "struck, hit, punched; frightened, scared, terrified; arrested, detained, seized"
)
HANDLINGS = _concepts(
    "bought, purchased; hid/hidden, concealed; carried, transported, hauled; found, discovered; examined, inspected, studied;"
    "lost, misplaced; stole/stolen, snatched; destroyed, ruined, wrecked; wanted, desired; described, portrayed;"
    "repaired, fixed, mended; cleaned, washed, scrubbed; received, got, obtained; sold, traded"
)
PLACES = _concepts(
    "in the forest, in the woods; in the shop, at the store; in the street, on the road; at the airport, at the airfield;"
    "in the hospital, at the clinic; at school, in the classroom; at the beach, on the shore, by the sea;"
    "in the garden, in the yard; in the office, at the workplace; on the mountain, on the hill; in the pub, at the bar;"
    "in the church, at the chapel; in prison, in jail; on the farm, on the ranch; at the hotel, at the inn;"
    "in the harbour, at the port, at the docks; at the factory, in the plant; in the theatre, at the playhouse"
)
TIMES = _concepts(
    "at dawn, at sunrise, at daybreak; at night, after dark; yesterday, the day before; last week, seven days ago;"
    "in winter, in the cold season; in summer, in the hot season; at noon, at midday; long ago, many years ago;"
    "recently, a short time ago, lately; in autumn, in the fall; during the war, in wartime; on holiday, during the vacation;"
    "at dusk, at sunset, in the twilight; soon after, a little later; again, once more; all the time, constantly"
)
MANNERS = (
    "quietly",
    "quickly",
    "carefully",
    "happily",
    "secretly",
    "calmly",
    "proudly",
    "suddenly",
    "slowly",
    "angrily",
)

# V: past, P: participle, A: agent, O: object, L: place, T: time; manner and missing parts are handled by `say`
FORMS = (
    "A V O L T",
    "A V O T L",
    "T , A V O L",
    "L , A V O T",
    "O was P by A L T",
    "T , O was P by A L",
    "L , O was P by A T",
    "it was A who V O L T",
)
ACTIVE = tuple(i for i, form in enumerate(FORMS) if "was P" not in form)
PASSIVE = tuple(i for i, form in enumerate(FORMS) if "was P" in form)


T = TypeVar("T")


class Draw:
    """Choices from one seed. Uses ``random()`` alone, the one method whose sequence Python promises never to change."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def below(self, n: int) -> int:
        return int(self._random() * n)

    def one(self, of: Sequence[T]) -> T:
        return of[self.below(len(of))]

    def other(self, of: Sequence[T], than: Sequence[T]) -> T:
        """One that is not among ``than``, where there is one."""
        return self.one([x for x in of if x not in than] or of)

    def some(self, of: Sequence[T], k: int) -> list[T]:
        left = list(of)
        return [left.pop(self.below(len(left))) for _ in range(k)]

    def chance(self, p: float) -> bool:
        return self._random() < p


def choices(slot: str, event: Event) -> dict[str, tuple[str, ...]]:
    """What can fill a slot of this event: people are met, things are handled."""
    meeting = event["action"] in MEETINGS
    return {
        "agent": PEOPLE,
        "action": MEETINGS if meeting else HANDLINGS,
        "object": PEOPLE if meeting else THINGS,
        "place": PLACES,
        "time": TIMES,
    }[slot]


def new_event(draw: Draw, meeting: bool) -> dict[str, str]:
    event = {"action": draw.one(list(MEETINGS if meeting else HANDLINGS))}
    for slot in ("agent", "object", "place", "time"):
        event[slot] = draw.other(list(choices(slot, event)), [event.get("agent", "")])
    return event


def changed(draw: Draw, event: Event, slots: Sequence[str]) -> dict[str, str]:
    """The event with another concept in each of these slots."""
    result = dict(event)
    if (
        "action" in slots and "object" in slots and draw.chance(0.5)
    ):  # then the other kind of action is possible too
        fresh = new_event(draw, meeting=event["action"] not in MEETINGS)
        result["action"], result["object"] = fresh["action"], fresh["object"]
        slots = [slot for slot in slots if slot not in ("action", "object")]
    for slot in slots:  # never a concept of either event's people, which would be half a swap
        people = (event["agent"], event["object"], result["agent"], result["object"])
        result[slot] = draw.other(
            list(choices(slot, event if slot == "agent" else result)), [event[slot], *people]
        )
    return result


def gold(first: Event, second: Event) -> int:
    """The number of slots (0 to 5) that both events fill with the same concept."""
    return sum(first[slot] == second[slot] for slot in SLOTS)


def wording(draw: Draw, event: Event) -> dict[str, str]:
    """One of the wordings of each slot's concept."""
    return {slot: draw.one(choices(slot, event)[event[slot]]) for slot in SLOTS}


def say(draw: Draw, words: Mapping[str, str], form: int) -> str:
    """One sentence: this form, with an article for agent and object and, one time in three, an adverb, both at random."""
    past, _, participle = words["action"].partition("/")
    adverb = draw.one(MANNERS) + " " if draw.chance(1 / 3) else ""
    agent, thing = (
        f"{draw.one(('the', 'the', 'a'))} {words[slot]}" for slot in ("agent", "object")
    )
    parts = {
        "A": agent,
        "O": thing,
        "V": adverb + past,
        "was": f"was {adverb}".strip(),
        "P": participle or past,
        "L": words["place"],
        "T": words["time"],
    }
    text = " ".join(filter(None, (parts.get(symbol, symbol) for symbol in FORMS[form].split())))
    text = re.sub(r"\ba (?=[aeiou])", "an ", text.replace(" ,", ",").removeprefix(", "))
    return text[0].upper() + text[1:] + "."


def pair(draw: Draw, kind: str) -> tuple[str, str, int]:
    """Two sentences and their gold value.

    reworded: each sentence in its own words and form, so that what is shared often looks different; gold 0 to 5.
    close:    what is shared is said in the same words, and both sentences have one form; gold 0 to 5.
    swapped:  two people change roles, and what is shared is said in the same words; gold 0 to 3.
    """
    first = new_event(draw, meeting=kind == "swapped" or draw.chance(0.5))
    if kind == "swapped":
        second = changed(draw, first, draw.some(("action", "place", "time"), draw.below(4)))
        second["agent"], second["object"] = first["object"], first["agent"]
    else:
        second = changed(draw, first, draw.some(SLOTS, draw.below(6)))
    words = wording(draw, first)
    form = draw.below(len(FORMS))
    other = wording(draw, second)
    if kind != "reworded":
        same = {word: words[slot] for slot in SLOTS for word in choices(slot, first)[first[slot]]}
        other = {slot: same.get(word, word) for slot, word in other.items()}
    other_form = form if kind == "close" else draw.below(len(FORMS))
    return say(draw, words, form), say(draw, other, other_form), gold(first, second)


def pairs(split: str, taken: set[str]) -> Iterator[tuple[str, str, int, str]]:
    """The pairs of a split, the three kinds in turn; no sentence in ``taken``, which grows, and none twice."""
    draw = Draw(SEEDS[split])
    count = 0
    while count < SIZES[split]:
        kind = KINDS[count % len(KINDS)]
        first, second, value = pair(draw, kind)
        if first == second or first in taken or second in taken:
            continue
        taken |= {first, second}
        count += 1
        yield first, second, value, kind


@dataclass(frozen=True)
class GeneratedPairs:
    """The pairs of a split, scored as any pairs are."""

    sentences1: tuple[str, ...]
    sentences2: tuple[str, ...]
    gold: np.ndarray
    kind: tuple[str, ...]
    sha256: str

    @property
    def sentences(self) -> list[str]:
        return [*self.sentences1, *self.sentences2]

    def score(self, vectors: Vectors) -> TaskResult:
        predictions = {
            "prediction": cosines(self.sentences1, self.sentences2, vectors, "CHECK"),
            "gold": self.gold,
            "subset": np.array(self.kind, dtype=str),
        }
        score = score_predictions(predictions, "CHECK")
        return TaskResult(
            suite="check",
            task="CHECK",
            protocol=GENERATED,
            metric="spearman",
            value=score.value,
            n=score.n,
            detail=score.detail,
            predictions=predictions,
        )


@functools.cache
def generated(split: str = "test") -> GeneratedPairs:
    taken: set[str] = set()
    made = {name: list(pairs(name, taken)) for name in SIZES}[split]
    rows = ["sentence1\tsentence2\tgold\tkind"] + ["\t".join(map(str, row)) for row in made]
    first, second, values, kind = zip(*made, strict=True)
    content = ("\n".join(rows) + "\n").encode()
    return GeneratedPairs(
        first, second, np.array(values, dtype=np.float64), kind, hashlib.sha256(content).hexdigest()
    )
