"""TODO src/regard/decoding/constraints."""
