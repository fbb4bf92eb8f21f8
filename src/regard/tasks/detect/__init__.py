"""Object detection: labels and boxes as a set (DETR)."""
