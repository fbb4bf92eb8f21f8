"""Forecasting: the values of a series after its end."""
