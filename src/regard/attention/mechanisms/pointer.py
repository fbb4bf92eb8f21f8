"""Pointer networks: attention whose weights are the output distribution."""

from typing import Any, ClassVar

from regard.attention.module import Attention


class Pointer(Attention):
    """Additive attention as a distribution over the positions of the source.

        p(j) = softmax_j(vᵀ tanh(W₁ e_j + W₂ d))

    Vinyals, Fortunato and Jaitly 2015, section 2.3, https://arxiv.org/abs/1506.03134
    By itself this is Bahdanau's attention, whose weights are the output, a distribution over a source of any length. A
    decoder with it is a pointer-generator: it mixes copying with its vocabulary (models/layers/pointer.py, after See, Liu
    and Manning 2017, https://arxiv.org/abs/1704.04368).
    Cost: that of Additive; a decoder adds O(T (S + V)) for a vocabulary of V.
    """

    points: ClassVar[bool] = True
    """A decoder copies from the source by the weights of its last attention."""

    def __init__(self, query: int, key: int | None = None, **options: Any):
        super().__init__(query, key, score="additive", **options)
        if not self.normalise.sums_to_one:
            raise ValueError(
                f"Pointer needs weights that sum to one, for they are a distribution over the source, got "
                f"{type(self.normalise).__name__}; use Softmax or Sparsemax"
            )
