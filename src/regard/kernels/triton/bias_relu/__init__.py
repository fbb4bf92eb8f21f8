"""Backward of bias and ReLU in Triton, for models/layers/feedforward.py. All files import triton."""
