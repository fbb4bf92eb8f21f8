"""The engine on a CPU as machine code: `predict --compile`.

A Transformer's step for one sentence is some hundred small operations, and calling them costs as much as the arithmetic.
Here a whole search is one call of C++, which is compiled on the machine that runs it (`library.py`), once for all models,
since it is given their weights (`matrices.py`). It makes its own products (`product.hpp`), in float32 or in 8 bits, and keys
and values stay where they were written (`transformer.cpp`), so that a search that reorders its hypotheses copies numbers of
rows and nothing else. What it finds is what the files of the same names one folder up find, but for the last digits.
"""
