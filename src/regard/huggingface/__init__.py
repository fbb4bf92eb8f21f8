"""Encoder-decoder models of Hugging Face's transformers: what their files say, and how their weights become ours.

Nothing here imports that library: config.json is read by `settings.py`, which knows every field that it may hold, and the
weights are those of a safetensors file. `regard import` and `regard export --to huggingface` meet here.
"""
