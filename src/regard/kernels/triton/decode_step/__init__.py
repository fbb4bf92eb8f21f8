"""One step of a Transformer's decoder in Triton: what `decoding/engines/cuda/fused_layer.py` runs. All here import triton."""
