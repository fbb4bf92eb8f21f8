"""Inference: opening trained models, predicting with them, ensembles, and back-translation."""
