"""Anomaly detection: a score for each step of a series, and alarms above a threshold that needs no labels."""
