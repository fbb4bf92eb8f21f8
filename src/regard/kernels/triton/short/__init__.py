"""Attention between short sequences in Triton: what brief runs. `operator` alone imports without Triton."""
