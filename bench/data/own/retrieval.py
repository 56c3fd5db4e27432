"""Queries, documents and judgements of a user: a folder in BEIR's layout, or one file of queries,
documents and relevance.

Every check names the row. A folder has ``queries``, ``corpus`` and ``qrels``, each in any format of
tables; ``qrels`` may be a folder with a file per split, and then ``test`` is scored.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from bench.base.errors import DataDamaged, DataMissing
from bench.data.own.columns import first_of
from bench.data.own.items import TEST, read_items, scored_items
from bench.data.own.naming import OwnFile, stem
from bench.data.own.rows import FileRow, cell_of, hash_rows, no_rows, read_rows
from bench.data.reading import SUFFIXES, format_of
from bench.data.reading.cells import number_of, shown, text_of
from bench.data.reading.naming import plain_name
from bench.data.sets import single_spaced

QUERIES = "queries"
CORPUS = "corpus"
QRELS = "qrels"
LAYOUT = (
    "--suite retrieval:FOLDER, with queries.jsonl (_id, text), corpus.jsonl (_id, title, text) and "
    "qrels.tsv (query-id, corpus-id, score), or --suite retrieval:FILE, with the columns query, "
    "document and relevance"
)
ID = ("_id",)
TEXT = ("text",)
TITLE = ("title",)
QUERY_ID = ("query-id", "qid")
DOCUMENT_ID = ("corpus-id", "document-id", "doc-id", "pid")
RELEVANCE = ("score", "relevance", "label")
"""Known names; ``plain_name`` makes those alike that mean the same."""
MOST_RELEVANT = 1_000_000
"""The highest relevance: above any scale in use, and small enough that sums hold it."""


@dataclass(frozen=True)
class JudgedQueries:
    """Queries, the documents that are searched, and which of them answer which query."""

    name: str
    # id -> text, in the order of the data
    queries: dict[str, str]
    documents: dict[str, str]
    # id of a query -> id of a document -> its relevance, above 0 if it is an answer
    relevance: dict[str, dict[str, int]]
    sha256: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.queries)

    @cached_property
    def gold(self) -> np.ndarray:
        """(N,) documents that answer each query."""
        judged = [self.relevance[query].values() for query in self.queries]
        return np.array([sum(grade > 0 for grade in grades) for grades in judged])


@dataclass(frozen=True)
class Judgement:
    """One row that says how relevant a document is to a query."""

    place: str
    query: str
    document: str
    relevance: int


@dataclass(frozen=True)
class Text:
    """One row with a text and its id."""

    place: str
    id: str
    text: str


def read_retrieval(own: OwnFile) -> JudgedQueries:
    """Read queries, documents and judgements.

    Raises DataMissing for a folder without one of its files, DataDamaged and BenchError for a row
    that is wrong.
    """
    notes: tuple[str, ...] = ()
    if own.path.is_dir():
        queries, documents, judgements, notes = _read_folder(own.path)
    else:
        queries, documents, judgements = _read_file(own)
    relevance = _group(judgements)
    for query in queries:
        if not any(grade > 0 for grade in relevance.get(query.id, {}).values()):
            raise DataDamaged(
                f"{query.place}: no document answers the query '{query.text[:40]}'",
                "give it a document with a relevance above 0, or drop the query",
            )
    graded = (
        [query.id, document, grade]
        for query in queries
        for document, grade in sorted(relevance[query.id].items())
    )
    texts = ([query.id, query.text] for query in queries)
    return JudgedQueries(
        name=own.name,
        queries={query.id: query.text for query in queries},
        documents=documents,
        relevance={query.id: relevance[query.id] for query in queries},
        sha256=hash_rows(chain(texts, documents.items(), graded)),
        notes=notes,
    )


def _read_folder(
    folder: Path,
) -> tuple[list[Text], dict[str, str], list[Judgement], tuple[str, ...]]:
    """Read the queries that are scored, all documents, the judgements, and a note for the user."""
    qrels = folder / QRELS
    file = _find_table(qrels, TEST) if qrels.is_dir() else _find_table(folder, QRELS)
    queries = list(_read_texts(_find_table(folder, QUERIES)))
    for query in queries:
        if not query.text:
            raise DataDamaged(f"{query.place} has an empty query", "drop it")
    documents = {row.id: row.text for row in _read_texts(_find_table(folder, CORPUS))}
    judgements = list(_read_qrels(file))
    ids = {query.id for query in queries}
    for judgement in judgements:
        _check_known(judgement, "query", judgement.query, ids, QUERIES)
        _check_known(judgement, "document", judgement.document, documents, CORPUS)
    if not qrels.is_dir():
        return queries, documents, judgements, ()
    named = {judgement.query for judgement in judgements}
    scored = [query for query in queries if query.id in named]
    notes: tuple[str, ...] = ()
    if len(scored) < len(queries):
        others = len(queries) - len(scored)
        notes = (f"{file}: it judges {len(scored):,} queries; {others:,} others are left out",)
    return scored, documents, judgements, notes


def _check_known(
    judgement: Judgement, what: str, one: str, known: Container[str], table: str
) -> None:
    """Raise DataDamaged for a judgement of a query or document that is not there."""
    if one not in known:
        raise DataDamaged(
            f"{judgement.place} names the {what} '{one[:40]}', which '{table}' does not have",
            "correct the id, or drop the row",
        )


def _read_file(own: OwnFile) -> tuple[list[Text], dict[str, str], list[Judgement]]:
    """Read one file of queries, documents and relevance. Their ids count distinct texts from 1."""
    queries: dict[str, Text] = {}
    documents: dict[str, str] = {}
    judgements = []
    for item in scored_items(own, read_items(own)):
        query, document = item.texts
        if not query or not document:
            what = "document" if query else "query"
            raise DataDamaged(f"{item.place} has an empty {what}", "drop the row")
        of_query = queries.setdefault(query, Text(item.place, str(len(queries) + 1), query))
        of_document = documents.setdefault(document, str(len(documents) + 1))
        grade = _relevance(item.answer, item.place)
        judgements.append(Judgement(item.place, of_query.id, of_document, grade))
    texts = {number: text for text, number in documents.items()}
    return list(queries.values()), texts, judgements


def _find_table(folder: Path, name: str) -> Path:
    """Return the table of that name in a folder. Raises DataMissing without one, DataDamaged for
    several.
    """
    found = [
        file
        for file in sorted(folder.glob(f"{name}.*"))
        if format_of(file) in SUFFIXES and stem(file) == name
    ]
    if not found:
        raise DataMissing(f"{folder} has no table '{name}'", LAYOUT)
    if len(found) > 1:
        raise DataDamaged(
            f"{folder} has {found[0].name} and {found[1].name}", "keep one of the two"
        )
    return found[0]


def _read_texts(file: Path) -> Iterator[Text]:
    """Yield texts with their ids; documents begin with their title.

    Raises DataDamaged if an id is there twice.
    """
    seen: set[str] = set()
    columns: list[str] = []
    names: list[str] = []
    title_column: str | None = None
    for row in read_rows(file):
        columns = columns or _find_columns(file, row, (ID, TEXT))
        if names != list(row.cells):
            names = list(row.cells)
            title_column = first_of(TITLE, names)
        one, text = _id(row, columns[0]), text_of(cell_of(row, columns[1]), row.place, columns[1])
        if one in seen:
            raise DataDamaged(
                f"{row.place} has the id '{one[:40]}', as a row before it has",
                "give each row a different id",
            )
        seen.add(one)
        title = row.cells[title_column] if title_column else None
        if title:
            text = f"{text_of(title, row.place, 'title')} {text}"
        yield Text(row.place, one, single_spaced(text))
    if not seen:
        raise no_rows(file)


def _read_qrels(file: Path) -> Iterator[Judgement]:
    columns: list[str] = []
    for row in read_rows(file):
        columns = columns or _find_columns(file, row, (QUERY_ID, DOCUMENT_ID, RELEVANCE))
        query, document, relevance = columns
        grade = _relevance(cell_of(row, relevance), row.place)
        yield Judgement(row.place, _id(row, query), _id(row, document), grade)
    if not columns:
        raise no_rows(file)


def _find_columns(file: Path, first: FileRow, needed: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the file's own names of the columns that are needed, each by one of its known names.

    Raises DataDamaged if the first row lacks one.
    """
    found = []
    for known in needed:
        column = first_of([plain_name(name) for name in known], list(first.cells))
        if column is None:
            raise DataDamaged(
                f"{file}: expected the column {known[0]}; it has "
                f"{', '.join(name[:30] for name in first.cells)}",
                LAYOUT,
            )
        found.append(column)
    return found


def _id(row: FileRow, column: str) -> str:
    value: Any = cell_of(row, column)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataDamaged(
            f"{row.place} has the id {shown(value)}", "write a text or a whole number"
        )
    return str(value).strip()


def _relevance(value: Any, place: str) -> int:
    """Return a whole number from 0. Raises DataDamaged for anything else."""
    number = number_of(value, place, "relevance", "write 0 for a document that is no answer")
    if not 0 <= number <= MOST_RELEVANT or number != int(number):
        raise DataDamaged(
            f"{place} has the relevance {number:g}; expected a whole number from 0 to "
            f"{MOST_RELEVANT:,}",
            "write 0 for a document that is no answer",
        )
    return int(number)


def _group(judgements: list[Judgement]) -> dict[str, dict[str, int]]:
    """Return query -> document -> relevance. Raises DataDamaged for a pair that is judged twice."""
    relevance: dict[str, dict[str, int]] = {}
    for judgement in judgements:
        of_query = relevance.setdefault(judgement.query, {})
        if judgement.document in of_query:
            raise DataDamaged(
                f"{judgement.place}: query '{judgement.query[:40]}' and document "
                f"'{judgement.document[:40]}' are judged again",
                "keep one row for each query and document",
            )
        of_query[judgement.document] = judgement.relevance
    return relevance
