"""TODO src/regard/decoding/engines/cpu."""
