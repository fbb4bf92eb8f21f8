"""What logits cost and the slope of that cost in Triton: what training/projected.py runs. All here import triton."""
