"""Summarise: a document in, a short text that says what it is about out."""
