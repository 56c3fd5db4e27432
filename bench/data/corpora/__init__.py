"""Training text: rows of one or more cells, from a file, from several, or from the Hugging Face
hub. See docs/data.md.

A file is streamed, so its size does not matter; it is surveyed once, and tokenised once into
memory-mapped arrays:

corpus = open_corpus_file("wiki.txt.xz")          # reads the first row
len(corpus), corpus.sha256                        # one pass, remembered in the cache
ready = token_cache.tokenise(corpus, encode, tokenizer_key="...", vocab_size=8192)
ready.column(0).ids(np.array([5, 1, 9]))          # three arrays of token ids
"""

from bench.data.corpora.corpus import Corpus, open_corpus_file

__all__ = ["Corpus", "open_corpus_file"]
