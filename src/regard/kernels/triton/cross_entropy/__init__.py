"""Cross-entropy of logits and its gradient in Triton, for losses/linear_cross_entropy.py. All files import triton."""
