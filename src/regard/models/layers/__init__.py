"""Layers that encoders and decoders are made of."""
