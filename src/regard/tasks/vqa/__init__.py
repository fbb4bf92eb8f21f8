"""Visual question answering: an image and a question in, an answer out."""
