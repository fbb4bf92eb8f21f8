"""One Transformer decoder step in Triton, run by `decoding/engines/cuda/fused_layer.py`. All files here import triton."""
