"""Calibration of the cost model on a device: random requests, the time of every path, and a fit of its coefficients.

`regard bench calibrate` runs it.
"""
