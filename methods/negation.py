"""A sentence's negation by a rule that needs no parser.

SNCSE's authors parse each sentence with spaCy: an existing "not" goes; else "not" follows the first auxiliary; else a main verb
that is a form of "be" or a modal; else any other main verb gets do, does or did not and its base form; else "Not" leads.
Without a parser the first step is the same, auxiliaries are told by their form, and the step that needs a verb's base form
falls through to the last: "He plays the piano." becomes "Not He plays the piano." where theirs is "He does not play ...".
"""

from __future__ import annotations

import re

WORD = r"(?<![\w'’-])(?:{})(?![\w'’-])"  # a word by itself: not "can-do", not the is of "isn't"
NOT = re.compile(WORD.format("not") + r"\s*")
CANNOT = re.compile(WORD.format("cannot"))
# lower case only: May, Will and Might are names more often than auxiliaries; have is one before a participle
AUXILIARY = re.compile(
    WORD.format(
        "am|is|are|was|were|can|could|will|would|shall|should|may|must|might|(?:has|have|had)(?= (?:been|[a-z]+(?:ed|en))\\b)"
    )
)


def negate(sentence: str) -> str:
    """The sentence turned round. An empty one stays as it is."""
    if not sentence.strip():
        return sentence
    without, dropped = NOT.subn("", sentence, count=1)
    if dropped and without.strip():
        return without
    positive, dropped = CANNOT.subn("can", sentence, count=1)
    if dropped:
        return positive
    found = AUXILIARY.search(sentence)
    return f"{sentence[: found.end()]} not{sentence[found.end() :]}" if found else "Not " + sentence
