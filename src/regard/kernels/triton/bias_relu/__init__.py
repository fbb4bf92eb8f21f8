"""The way back through max(0, x + b) in Triton: what models/layers/feedforward.py runs. All here import triton."""
