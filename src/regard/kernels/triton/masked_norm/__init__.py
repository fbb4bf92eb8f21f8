"""Norms of feature maps over their kept places, fused with what follows them."""
