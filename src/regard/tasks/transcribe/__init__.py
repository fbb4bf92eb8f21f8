"""Speech recognition: sound in, a text out."""
