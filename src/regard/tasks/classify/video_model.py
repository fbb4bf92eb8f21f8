"""Video classifier: attention over the places of each frame, then over the frames."""

from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.positions.sinusoidal import Sinusoidal
from regard.attention.types import Attended, Encoded
from regard.data.image.batch import Images
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.encoders import find_summary
from regard.models.encoders.coordinates2d import compute_centres, encode_coordinates
from regard.models.encoders.transformer import Layer
from regard.models.layers.learned_queries import LearnedQueries
from regard.models.layers.transformer import Sublayers
from regard.models.readout import NO_WEIGHTS, Answer, ImageEncoder, collect_weights


class Frames(nn.Module):
    """Spatial attention pools each frame, self-attention mixes the frames, and temporal attention pools them into logits.

        m_t = gelu(W_m [map_t; waves(place)]),    f_t = W [attention(q, m_t); mean(map_t)] + PE(t)
        g = layers(f_1 .. f_T),    logits = W' attention(q', g) + b

    Feature maps have position encodings, or no frame vector would hold locations; features and positions go through a
    non-linearity together, so that even a mean over all places, which attention begins with, holds them. Weights are called
    "space.attention" (frame by frame, over the places of its map) and "time.attention" (over the frames).
    """

    def __init__(
        self,
        encoder: ImageEncoder,
        labels: int,
        size: int | None = None,
        *,
        layers: int = 1,
        heads: int = 4,
        space: AttentionFactory = partial(build_attention, "transformer"),
        time: AttentionFactory = partial(build_attention, "transformer"),
        dropout: float = 0.0,
    ):
        super().__init__()
        size = size or encoder.size
        self.encoder, self.waves = encoder, size - size % 4
        self.place = nn.Sequential(nn.Linear(encoder.size + self.waves, size), nn.GELU())
        self.space = LearnedQueries(1, size, size, space)
        self.join = nn.Linear(size + encoder.size, size)
        self.positions = Sinusoidal(size)
        sublayers = Sublayers(size, heads, drop_residual=dropout)
        self.layers = nn.ModuleList(Layer(sublayers) for _ in range(layers))
        self.norm = sublayers.build_final_norm()
        self.time = LearnedQueries(1, size, size, time)
        self.output = nn.Linear(size, labels)

    def forward(self, pictures: Images, frames: Bool[Tensor, "batch frames"], *, weights: bool = False) -> Answer:
        """`pictures` holds batch · frames pictures, clip after clip; `frames` is True where a clip has a frame."""
        batch, count = frames.shape
        if pictures.data.shape[0] != batch * count:
            raise ValueError(
                f"{batch} clips of {count} frames need {batch * count} pictures, clip after clip, "
                f"got {pictures.data.shape[0]}"
            )
        vectors, space = self.embed_frames(pictures, weights)
        data = self.positions(vectors.view(batch, count, -1))
        for layer in self.layers:
            data = layer(data, frames)
        time = self.time(Encoded(self.norm(data), frames), weights)
        logits = self.output(time.context[:, 0])
        if not weights or space.weights is None:
            return Answer(logits, NO_WEIGHTS)
        # (batch · frames, heads, 1, places): a frame attends to its own places alone, so frames are the queries of a clip
        apart = space.weights[:, :, 0].view(batch, count, *space.weights.shape[1::2]).movedim(1, 2)
        maps = apart * frames[:, None, :, None]
        return Answer(logits, collect_weights({"space.attention": space._replace(weights=maps), "time.attention": time}))

    def embed_frames(self, pictures: Images, weights: bool) -> tuple[Float[Tensor, "pictures size"], Attended]:
        """One vector for each frame, and the spatial attention."""
        encoded = self.encoder(pictures)
        where = encode_coordinates(compute_centres(pictures, encoded, self.encoder.stride), self.waves).to(
            encoded.data.dtype
        )
        placed = self.place(torch.cat((encoded.data, where), dim=-1))
        attended = self.space(Encoded(placed, encoded.keep), weights)
        return self.join(torch.cat((attended.context[:, 0], find_summary(encoded)), dim=-1)), attended
