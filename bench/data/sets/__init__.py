"""Evaluation data and corpora: the list of them, their sources on the network, their files here,
and checks that these are complete.
"""

from bench.data.sets.first_use import (
    count_rows,
    read_origin,
    unexpected_corpus,
    unexpected_rows,
)
from bench.data.sets.folder import Copy, DataFolder, State, fetched_folder
from bench.data.sets.forms import Found, cells, lf, recognise, single_spaced
from bench.data.sets.manifest import (
    ANY,
    HUB_CORPORA,
    MADE_HERE,
    RAW,
    RECIPE_CORPORA,
    STSB_TRAIN,
    TARGET,
    TOKENISED,
    DataFile,
    DataSet,
    Form,
    damaged_file,
    data_set,
    data_sets,
    parse_manifest,
)
from bench.data.sets.pending import (
    ON_ITS_PAGE,
    Later,
    NotFetchedYet,
    Pending,
    SetFetcher,
    pending_set,
)
from bench.data.sets.sources import Source, SourcePart, all_sources, sources_of

__all__ = [
    "ANY",
    "Copy",
    "DataFile",
    "DataFolder",
    "DataSet",
    "Form",
    "Found",
    "HUB_CORPORA",
    "Later",
    "MADE_HERE",
    "NotFetchedYet",
    "ON_ITS_PAGE",
    "SourcePart",
    "Pending",
    "RAW",
    "RECIPE_CORPORA",
    "STSB_TRAIN",
    "SetFetcher",
    "Source",
    "State",
    "TARGET",
    "TOKENISED",
    "cells",
    "count_rows",
    "damaged_file",
    "data_set",
    "data_sets",
    "fetched_folder",
    "lf",
    "parse_manifest",
    "pending_set",
    "read_origin",
    "recognise",
    "single_spaced",
    "all_sources",
    "sources_of",
    "unexpected_corpus",
    "unexpected_rows",
]
