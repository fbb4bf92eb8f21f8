"""Image captioning: an image in, a text out."""
