"""From a request to records: methods, recipes, plans, execution, and tables of papers."""
