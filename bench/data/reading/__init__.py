"""A user's tables, row by row: text, CSV, TSV, JSON lines, Parquet, saved data sets.

One reader for training text (``bench.data.corpora``) and for a user's evaluation data
(``bench.data.own``): the format by the file's name, its rows with their places, and the cells.

table = open_table(Path("pairs.csv"))
for number, cells in table.records(): ...
table.place(7)                                     # "line 7"
"""

from bench.data.reading.table import SUFFIXES, TableFile, format_of, open_table

__all__ = ["SUFFIXES", "TableFile", "format_of", "open_table"]
