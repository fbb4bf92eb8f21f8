"""Forecasting networks, one file each: `build(settings, dropout, sizes)`."""
