"""Embedding and output projection of the CPU engine."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.decoding.engines.eager.linear import Buffers, prepare_linear, prepare_matrix
from regard.models.layers.embedding import Embedding
from regard.models.output_heads.projection import Projection


class StepEmbedding:
    """Embedding for single positions, whose vectors are cached."""

    def __init__(self, embedding: Embedding):
        self.embedding, self.table = embedding, embedding.table.weight.detach()
        self.places: dict[int, Float[Tensor, "1 size"]] = {}

    def __call__(self, tokens: Int[Tensor, " rows"], place: int) -> Float[Tensor, "rows size"]:
        embedding = self.embedding
        vectors = torch.embedding(self.table, tokens)
        if embedding.scale != 1.0:
            vectors.mul_(embedding.scale)
        if embedding.positions is not None:
            here = self.place(place, vectors)
            joined = embedding.positions.join
            vectors = vectors.add_(here) if joined == "add" else torch.cat((vectors, here.expand(len(tokens), -1)), dim=1)
        return vectors if isinstance(embedding.norm, nn.Identity) else embedding.norm(vectors)

    def place(self, number: int, like: Tensor) -> Float[Tensor, "1 size"]:
        """Vector of a position."""
        if number not in self.places:
            positions = self.embedding.positions
            assert positions is not None
            # by its call, which raises beyond its limit
            self.places[number] = positions(like.new_zeros(1, 1, like.shape[1]), number)[:, 0, -positions.size :]
        return self.places[number]


class OutputProjection:
    """Projection onto the vocabulary, into a reused buffer."""

    def __init__(self, output: Projection, table: Float[Tensor, "vocabulary embedding"], precision: str):
        self.fit = prepare_linear(output.fit, precision) if isinstance(output.fit, nn.Linear) else None
        self.matrix = prepare_matrix(output.matrix(table).detach(), output.bias.detach(), precision)

    def __call__(self, rooms: Buffers, data: Float[Tensor, "rows size"]) -> Float[Tensor, "rows vocabulary"]:
        return self.matrix.within(rooms, data if self.fit is None else self.fit(data))
