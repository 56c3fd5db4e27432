"""The names and abbreviations of tables and pages, and what they mean; docs/read-a-leaderboard.md
says the same."""

from __future__ import annotations

TERMS = {
    "STS": "semantic textual similarity: sentence pairs with people's ratings; the score is "
    "Spearman's rank correlation of cosines and ratings, x 100",
    "CxC": "Crisscrossed Captions: STS on pairs of image captions",
    "transfer": "accuracy of a linear classifier on the vectors, over seven data sets",
    "clustering": "share of texts that k-means puts with their topic, over eight data sets",
    "few-shot": "accuracy of a linear classifier that has 16 examples per class",
    "Avg.": "mean over the tasks of the suite",
    "CI": "confidence interval",
    "unsupervised": "trained on sentences without labels",
    "supervised": "trained on labelled pairs of sentences",
    "built-in backbone": "a BERT of 4 layers and 5 million weights inside the package",
    "senteval-all/1": "the papers' protocol of STS: SentEval's texts, one correlation over all "
    "pairs of a task",
    "MLM": "masked language modelling: the encoder also predicts hidden words",
    "EH": "energy-based hinge: a loss that PromCSE adds in supervised training",
}
"""Term -> its meaning, without a full stop."""
