"""Decoder steps on a CPU as plain functions of the weights, without the call overhead of modules."""
