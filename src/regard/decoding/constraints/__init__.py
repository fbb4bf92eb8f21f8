"""Constrained decoding: required prefixes and phrases, forbidden phrases and repeated n-grams, tracked per hypothesis."""
