"""The sides of a search, as sentence-transformers names them in ``encode_query`` and
``encode_document``.
"""

QUERY = "query"
DOCUMENT = "document"
SIDES = (QUERY, DOCUMENT)
