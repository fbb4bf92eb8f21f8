"""A scope as a small matrix of ones and zeros: a row for each query, a column for each key."""

import pytest
import torch


@pytest.fixture
def draw():
    def drawing(scope, queries=4, keys=4, offset=0, row=0, batch=1):
        allowed = scope.allowed(batch, 1, queries, keys, offset, torch.device("cpu"))
        matrix = allowed.expand(batch, 1, queries, keys)[row, 0]
        return ["".join("01"[int(one)] for one in line) for line in matrix]

    return drawing
