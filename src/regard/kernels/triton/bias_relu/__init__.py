"""The way back through max(0, x + b) in Triton: what models/feedforward.py runs. All here import triton."""
