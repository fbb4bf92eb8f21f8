"""TODO src/regard/inference."""
