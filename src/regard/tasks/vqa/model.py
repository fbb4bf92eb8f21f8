"""Stacked attention network: a question attends to a picture in several hops, each refining its query."""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.types import Attended, Encoded
from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.encoders import find_summary
from regard.models.encoders.coordinates2d import compute_centres, encode_coordinates
from regard.models.readout import NO_WEIGHTS, Answer, ImageEncoder, call_attention, collect_weights, require_attention
from regard.models.types import Encoder
from regard.tree import select


class Hop(nn.Module):
    """One hop: attention to the words of the question, then to the regions of the picture.

    w = words(u, question),    v = regions(u + w, map),    u' = v + u
    """

    def __init__(self, size: int, words: AttentionFactory, regions: AttentionFactory):
        super().__init__()
        self.words = words(size, size)
        self.regions = require_attention(regions(size, size), "stacked attention")
        self.fit_words = nn.Identity() if self.words is None else fit_size(self.words.size, size)
        self.fit_regions = fit_size(self.regions.size, size)

    def forward(
        self,
        known: Float[Tensor, "questions 1 size"],
        question: Encoded,
        picture: Encoded,
        about: Int[Tensor, " questions"] | None,
        weights: bool,
    ) -> tuple[Float[Tensor, "questions 1 size"], dict[str, Attended]]:
        """The refined state, and the attention of each kind."""
        attended, query = dict[str, Attended](), known
        if self.words is not None:
            attended["words"] = call_attention(self.words, known, self.words.remember(question), weights)
            query = known + self.fit_words(attended["words"].context)
        memory = self.regions.remember(picture)  # once for all questions about a picture
        attended["regions"] = call_attention(
            self.regions, query, memory if about is None else select(memory, about), weights
        )
        return known + self.fit_regions(attended["regions"].context), attended


class Stacked(nn.Module):
    """Attend to a picture with a question, and again with the refined state, hop after hop.

        v = tanh(W_v [map; waves(place)] + b),    u_0 = W_u norm(question)
        u_k = attention_k(u_{k-1}, v) + u_{k-1},    logits = MLP([u_K; norm(u_0) ∘ norm(u_K - u_0)])

    Yang et al. 2016, https://arxiv.org/abs/1511.02274, where the attention is additive and the logits are linear in u_K. But
    whether a picture has what a question names is no sum of the two: here a ReLU layer comes between, and the retrieved
    context is also multiplied by the question, as in Kim et al. 2016, https://arxiv.org/abs/1606.01455. Before each hop the
    words of the question are attended to as well, so that hops may attend to different words; not so where the attention to
    words is "none", as in the paper. Regions have position encodings, for questions about places.
    Weights are called "hops.n.words" and "hops.n.regions": one row each.
    """

    def __init__(
        self,
        picture: ImageEncoder,
        question: Encoder,
        answers: int,
        size: int = 256,
        *,
        hops: int = 2,
        words: AttentionFactory = partial(build_attention, "additive"),
        regions: AttentionFactory = partial(build_attention, "additive"),
        dropout: float = 0.0,
    ):
        super().__init__()
        if hops < 1:
            raise ValueError(f"stacked attention needs 1 hop or more, got {hops}")
        if size % 4:
            raise ValueError(f"stacked attention needs a size that is a multiple of 4, for the waves of places, got {size}")
        self.picture, self.question, self.size = picture, question, size
        self.see = nn.Linear(picture.size + size, size)
        self.ask = nn.Sequential(nn.LayerNorm(question.size), nn.Linear(question.size, size, bias=False))
        self.hops = nn.ModuleList(Hop(size, words, regions) for _ in range(hops))
        read = nn.Sequential(nn.LayerNorm(question.size), nn.Linear(question.size, size))
        self.read = nn.Identity() if words(size, size) is None else read
        self.asked, self.found = nn.LayerNorm(size), nn.LayerNorm(size)
        self.drop = nn.Dropout(dropout)
        self.output = nn.Sequential(nn.Linear(2 * size, size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(size, answers))

    def forward(
        self,
        pictures: Images,
        questions: Padded,
        *,
        about: Int[Tensor, " questions"] | None = None,
        weights: bool = False,
    ) -> Answer:
        """`about` is the row of the picture that each question is about; None: each has its own."""
        regions, question = self.regions(pictures), self.question(questions)
        words = Encoded(torch.tanh(self.read(question.data)), question.keep)
        first = known = self.ask(find_summary(question))[:, None]
        attended = dict[str, Attended]()
        for number, hop in enumerate(self.hops):
            known, of_hop = hop(known, words, regions, about, weights)
            attended |= {f"hops.{number}.{name}": result for name, result in of_hop.items()}
        both = torch.cat((known, self.asked(first) * self.found(known - first)), dim=-1)[:, 0]
        return Answer(self.output(self.drop(both)), collect_weights(attended) if weights else NO_WEIGHTS)

    def regions(self, pictures: Images) -> Encoded:
        """The places of the feature map, with position encodings."""
        encoded = self.picture(pictures)
        where = encode_coordinates(compute_centres(pictures, encoded, self.picture.stride), self.size).to(encoded.data.dtype)
        return Encoded(torch.tanh(self.see(torch.cat((encoded.data, where), dim=-1))), encoded.keep)


def fit_size(context_size: int, size: int) -> nn.Module:
    """Projection of a context to the size of the state; the identity where the sizes are equal."""
    return nn.Identity() if context_size == size else nn.Linear(context_size, size)
