"""One Transformer decoder step in Triton, for `decoding/engines/cuda/fused_layer.py`. All files import triton."""
