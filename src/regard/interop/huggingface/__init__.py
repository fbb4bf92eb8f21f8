"""Hugging Face transformers, both ways: import of its encoder-decoder models, export of ours in its format.

Nothing here imports that library: config.json is read by `settings.py`, which knows every field that it may hold, and the
weights are those of a safetensors file.
"""
