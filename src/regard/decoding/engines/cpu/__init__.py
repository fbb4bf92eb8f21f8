"""Decoder steps on a CPU as plain functions of the weights: equal to the modules, without their calls."""
