"""Embeddings of tokens, or of numbers, with optional positions, norm and dropout."""

from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from regard.attention.positions import Positions
from regard.attention.scope import Offset
from regard.models.layers.dropout import Drop


class Embedding(nn.Module):
    """Token embedding with optional positions and dropout.

        x_t = drop(join(E[y_t] √d, PE(t)))

    Vaswani et al. 2017, section 3.4 and 3.5, https://arxiv.org/abs/1706.03762. √d only where `scaled`; the table is then
    initialised with a standard deviation of 1/√d, so that it serves as an output layer too, and else uniformly within
    ±`spread`. `size` is the width of the output, which concatenated positions make wider. With `norm` a layer norm comes
    before the dropout, as in BART's authors' code. In packed rows, `places` are the positions of the tokens.
    With `numbers` each y_t is a vector of so many channels in place of a token, such as a frame of a spectrogram or the
    values of a series, and E is a linear layer.
    """

    def __init__(
        self,
        vocabulary: int,
        size: int,
        *,
        scaled: bool = False,
        spread: float = 0.1,
        positions: Positions | None = None,
        dropout: float = 0.0,
        variational: bool = False,
        norm: bool = False,
        numbers: bool = False,
    ):
        super().__init__()
        self.table = nn.Linear(vocabulary, size) if numbers else nn.Embedding(vocabulary, size)
        scaled = scaled and not numbers
        if numbers:
            nn.init.xavier_uniform_(self.table.weight)
        elif scaled:
            nn.init.normal_(self.table.weight, std=size**-0.5)
        else:
            nn.init.uniform_(self.table.weight, -spread, spread)
        self.positions = positions
        self.scale = size**0.5 if scaled else 1.0
        self.size = size if positions is None else positions.width(size)
        self.norm = nn.LayerNorm(self.size) if norm else nn.Identity()
        self.drop = Drop(dropout, variational)

    def forward(
        self,
        tokens: Shaped[Tensor, "rows time *channels"],
        offset: Offset = 0,
        mask: Float[Tensor, "rows size"] | None = None,
        places: Int[Tensor, "rows time"] | None = None,
    ) -> Float[Tensor, "rows time size"]:
        vectors = self.table(tokens)
        if self.scale != 1.0:
            vectors = vectors * self.scale
        if self.positions is not None:
            vectors = self.positions(vectors, offset, places)
        return self.drop(self.norm(vectors), mask)
