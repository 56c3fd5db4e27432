"""ConPVP's templates for positive and negative prototypes: the authors' code beside the paper's Table 1.

The two lists differ: the code has nine positive templates (the third is not in the paper), words four opposite ones
otherwise, and five more differ in a comma, a capital or an article. Where the paper's print has lost a quotation mark, it is
restored after the code.
"""

from __future__ import annotations

POSITIVE = {
    "repo": (
        'Given " {s} " , we assume that " {m} "',
        '" {s} " , Is this review positive ? {m} .',
        '" {s} " , is related to " {m} "',
        '" {s} " is a {m} news',
        '" {s} " is a {m} one',
        '" {s} " . In summary : " {m} "',
        'By " {s} " they mean {m} .',
        'Article " {s} " belongs to a {m} topic',
        'This sentence : " {s} " means {m} .',
    ),
    "paper": (
        'Given " {s} " , we assume that " {m} "',
        '" {s} " , is this review positive ? {m} .',
        '" {s} " , is {m} news',
        '" {s} " , is a {m} one',
        '" {s} " . In summary : " {m} "',
        'By " {s} " they mean {m} .',
        'Article " {s} " belongs to a {m} topic',
        'This sentence : " {s} " means {m} .',
    ),
}
NEGATIVE = {
    "repo": (
        '" {s} " , Is this review negative ? {m} .',
        'Without " {s} " they mean {m} .',
        '" {s} " is inconsistent to " {m} "',
        '" {s} " is totally different to : " {m} "',
        '" {s} " which not denotes {m} .',
        '" {s} " is not a {m} one',
        'This sentence : " {s} " not means {m} .',
        'Article " {s} " is definitely not about the {m} topic',
    ),
    "paper": (
        '" {s} " , is this review negative ? {m} .',
        'Without " {s} " , they mean {m} .',
        '" {s} " is inconsistent with " {m} "',
        '" {s} " is totally different from : " {m} "',
        '" {s} " which does not denote {m}',
        '" {s} " is not a {m} one',
        'This sentence : " {s} " does not mean {m} .',
        'Article " {s} " is definitely not about the {m} topic',
    ),
}
# PromptBERT's first template for each family, in the place of ConPVP's learned vectors (ablation "manual")
MANUAL = {"bert": 'This sentence of "{s}" means{m}.', "roberta": "This sentence : ' {s} ' means{m}."}


def anchor(length: int, layout: str) -> str:
    """The anchor's template: ``length`` learned vectors between the sentence and the mask.

    "repo" has the code's blanks, which become tokens in RoBERTa's vocabulary; "clean" has none and so gives, with every
    vocabulary, what BERT's makes of both.
    """
    return "{s}" + "{p}" * length + "{m} ." if layout == "clean" else "{s}  " + "{p} " * length + "{m} ."
