"""Training text: streamed from a file, surveyed once, tokenised once into memory-mapped arrays. See docs/corpora.md.

corpus = open_corpus("wiki.txt.xz")               # reads the first row
len(corpus), corpus.sha256                        # one pass, remembered in the cache
ready = token_cache.tokenise(corpus, encode, tokenizer_key="...", vocab_size=8192)
ready.column(0).ids(np.array([5, 1, 9]))          # three arrays of token ids
"""

from __future__ import annotations

from bench.base.cache import default_cache
from bench.data.corpora.corpus import Corpus, open_corpus
from bench.data.corpora.rows import COLUMNS, KINDS

__all__ = ["COLUMNS", "KINDS", "Corpus", "default_cache", "open_corpus"]
