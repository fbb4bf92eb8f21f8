"""Streaming: answers while they are decided, and answers to a source that is still arriving."""
