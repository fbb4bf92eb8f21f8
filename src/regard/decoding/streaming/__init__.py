"""Streaming: an answer as it is decided, and an answer to a source that still arrives."""
