"""C++ engine on a CPU: `predict --compile`.

A Transformer's step for one sentence is some hundred small operations, and calling them costs as much as the arithmetic.
Here a whole search is one call of C++, which is compiled on the machine that runs it (`build.py`), once for all models,
since their weights are arguments (`matrices.py`). It has its own matrix products (`product.hpp`), in float32 or int8, and
its KV cache never moves (`transformer.cpp`), so that reordering hypotheses copies row indices and nothing else. Its results
equal those of `engines/eager`, but for rounding.
"""
