"""Layers of which encoders and decoders are built."""
