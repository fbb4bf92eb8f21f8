"""CUDA engine: search on a GPU by CUDA graphs, with few synchronisations with the host.

A decoder's step is some hundred small kernels, and a GPU waits longer for each launch than it computes. So every tensor of a
step has a fixed address (`transformer.py`, `generic.py`), tokens are chosen on the device (`greedy.py`, `beam.py`), and a
whole step is one CUDA graph (`graph.py`). With Triton, a Transformer's kernels are fewer, and read no key that a row does
not see (`fused_layer.py`). Every few steps the host fetches the results (`results.py`) and packs active sentences into
smaller buffers (`search.py`). Encoders are replayed too (`encoder.py`). On a CPU the same code runs without graphs, which is
how it is tested.
On a CPU the same code runs kernel by kernel, which is how it is tested.
"""
