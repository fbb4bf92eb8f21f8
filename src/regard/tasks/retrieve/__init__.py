"""Image-text retrieval: dual encoders, an index, and re-ranking."""
