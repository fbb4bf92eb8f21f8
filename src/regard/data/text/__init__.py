"""Text as a modality: tokenizers, vocabularies, the codec of both sides, noise, and synthetic samples."""
