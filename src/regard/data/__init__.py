"""Data: raw records -> tokens or features -> batches."""
