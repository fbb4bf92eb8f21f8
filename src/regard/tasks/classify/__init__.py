"""Image and video classification: one label, or several."""
