"""Eager engine in PyTorch on a CPU: decoder steps as plain functions of prepared weights, or the module's own steps.

Prepared weights are the default on a CPU: C++ needs a compiler and the option `--compile`, and the module's own steps take
1.4 to 5.1 times as long for one source, and up to 1.6 times for 64 (benchmarks/results/decoding_engines.csv).
"""
