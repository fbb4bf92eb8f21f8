"""Eager engine in PyTorch on a CPU: decoder steps as plain functions of prepared weights, or the module's own steps."""
