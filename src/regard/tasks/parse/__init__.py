"""Semantic parsing: a question in, a query or another formal answer out."""
