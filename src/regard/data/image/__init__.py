"""Pictures: read from files, put into batches, changed at random."""
