"""One step of a Transformer's decoder in Triton: what `native/gpu/fused.py` runs. All here import triton."""
