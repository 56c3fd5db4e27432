"""How numbers look: tables in every format, pages, figures."""
