"""Output layer of a decoder of numbers: frames of a spectrogram, values of a series."""

from jaxtyping import Float
from torch import Tensor, nn


class NumberOutput(nn.Module):
    """Linear projection onto the numbers of a step, and onto the logit of the stop probability where it is learned.

        output = W x + b

    Wang et al. 2017, section 3.3, https://arxiv.org/abs/1703.10135; Shen et al. 2018, section 2.2,
    https://arxiv.org/abs/1712.05884
    """

    def __init__(self, size: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(size, outputs)

    def forward(
        self, data: Float[Tensor, "*rows size"], table: Float[Tensor, "embedding channels"]
    ) -> Float[Tensor, "*rows outputs"]:
        """Project; the `table` of the input layer, which an output for tokens may share, is not used."""
        output: Tensor = self.linear(data)
        return output
