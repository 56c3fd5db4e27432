"""The eight prompts of MetaEOL (Lei et al. 2024), two for each of its four tasks.

[X] is the sentence's place. Source: Yibin-Lei/MetaEOL evaluation.py:117-124.
"""

from __future__ import annotations

META_PROMPTS = {
    "categories": (
        "In this task, you're presented with a text excerpt. Your task is to categorize the "
        "excerpt into a broad category such as 'Education', 'Technology', 'Health', "
        "'Business', 'Environment', 'Politics', or 'Culture'. These categories help in "
        "organizing content for better accessibility and targeting. For this task, this "
        'sentence : "[X]" should be classified under one general category in one word:"'
    ),
    "opinion": (
        "In this task, you're given a statement and you need to determine whether it's "
        "presenting an 'Opinion' or a 'Fact'. This distinction is vital for information "
        "verification, educational purposes, and content analysis. For this task, this "
        'sentence : "[X]" discriminates between opinion and fact in one word:"'
    ),
    "rating": (
        "In this task, you're given a review from an online platform. Your task is to "
        "generate a rating for the product based on the review on a scale of 1-5, where 1 "
        "means 'extremely negative' and 5 means 'extremely positive'. For this task, this "
        'sentence : "[X]" reflects the sentiment in one word:"'
    ),
    "emotion": (
        "In this task, you're reading a personal diary entry. Your task is to identify the "
        "predominant emotion expressed, such as joy, sadness, anger, fear, or love. For this "
        'task, this sentence : "[X]" conveys the emotion in one word:"'
    ),
    "paraphrase": (
        "In this task, you're presented with two sentences. Your task is to assess whether "
        "the sentences convey the same meaning. Use 'identical', 'similar', 'different', or "
        "'unrelated' to describe the relationship. To enhance the performance of this task, "
        'this sentence : "[X]" means in one word:"'
    ),
    "synonym": (
        "In this task, you're given a sentence and a phrase. Your task is to determine if the"
        " phrase can be a contextual synonym within the given sentence. Options include "
        "'yes', 'no', or 'partially'. To enhance the performance of this task, this sentence "
        ': "[X]" means in one word:"'
    ),
    "fact": (
        "In this task, you're examining a news article. Your task is to extract the most "
        'critical fact from the article. For this task, this sentence : "[X]" encapsulates '
        'the key fact in one word:"'
    ),
    "entities": (
        "In this task, you're reviewing a scientific abstract. Your task is to identify the "
        "main entities (e.g., proteins, diseases) and their relations (e.g., causes, treats)."
        ' For this task, this sentence : "[X]" highlights the primary entity or relation in '
        'one word:"'
    ),
}
