"""Sound: reading, features, batches, codecs, and synthetic sound."""
