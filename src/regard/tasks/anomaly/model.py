"""Anomaly detectors: an attention autoencoder, a memory of windows, a causal forecast, and the Anomaly Transformer."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.types import Encoded
from regard.data.series.batch import SeriesSource
from regard.models.attention_factory import build_attention
from regard.tasks.anomaly.baselines import KMeans, Pca
from regard.tasks.anomaly.config import AnomalyDropout, AnomalyModel
from regard.tasks.anomaly.layers import EncoderLayer, Patches, Sizes, Values, Weights, run_layers
from regard.tasks.anomaly.memory import WindowMemory

TINY = 1e-4
"""Smallest probability of an association, so that its logarithm is finite."""


class Detection(NamedTuple):
    """Values that a detector expects of a window, and what its attentions looked at where that was asked for."""

    expected: Values
    discrepancy: Float[Tensor, "batch time"] | None = None
    """Association discrepancy of each step (model.detector=association)."""
    penalty: Float[Tensor, ""] | None = None
    """Term that a detector adds to the mean squared error of a batch while it is trained."""
    weights: Mapping[str, Weights] = MappingProxyType({})
    """Weights of each attention over the patches, by name."""


def build_layers(settings: AnomalyModel, dropout: AnomalyDropout, scope: str = "everywhere") -> nn.ModuleList:
    """Encoder layers, as the settings of a model say."""
    options: dict[str, Any] = {"attention": settings.self_attention, "scope": scope}
    options |= {"dropout": dropout.residual, "drop_attention": dropout.attention}
    return nn.ModuleList(
        EncoderLayer(settings.hidden_size, settings.heads, settings.feedforward_size, **options)
        for _ in range(settings.layers)
    )


class Reconstruction(nn.Module):
    """Attention autoencoder: patches attend to each other, a few latent vectors to them, and the patches again to those.

        z = W_z attention(latents, encoder(patches))        x̂ = W_x attention(positions, z)

    What a window has in common with those of the training passes through `latents` vectors of `latent_size` numbers; what is
    unusual does not. Weights are called "encoder.n", "latents" and "decoder".
    """

    def __init__(self, settings: AnomalyModel, dropout: AnomalyDropout, sizes: Sizes):
        super().__init__()
        size = settings.hidden_size
        self.patches = Patches(sizes, settings.patch, size)
        self.encoder = build_layers(settings, dropout)
        self.norm = nn.LayerNorm(size)
        self.latents = nn.Parameter(torch.randn(settings.latents, size))
        self.gather = build_attention("transformer", size, size, heads=settings.heads)
        self.squeeze, self.expand = nn.Linear(size, settings.latent_size), nn.Linear(settings.latent_size, size)
        self.slots = nn.Parameter(torch.randn(settings.latents, size))
        self.queries = nn.Parameter(torch.randn(self.patches.count, size))
        self.spread = build_attention("transformer", size, size, heads=settings.heads)
        self.head = nn.Sequential(
            nn.LayerNorm(size), nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, settings.patch * sizes.targets)
        )
        self.targets = sizes.targets

    def forward(self, source: SeriesSource, weights: bool = False, places: Int[Tensor, " batch"] | None = None) -> Detection:
        data, keep = self.patches(source), self.patches.keep(source)
        data, looks = run_layers(self.encoder, data, keep, weights)
        gathered, looked = attend(self.gather, self.latents, Encoded(self.norm(data), keep), weights)
        looks |= {} if looked is None else {"latents": looked}
        squeezed = self.expand(self.squeeze(gathered)) + self.slots
        spread, looked = attend(self.spread, self.queries, Encoded(squeezed), weights)
        looks |= {} if looked is None else {"decoder": looked}
        return Detection(self.head(spread).reshape(len(data), -1, self.targets), weights=looks)


class Memory(nn.Module):
    """Attention to windows of the training rows. Weights are called "memory"."""

    def __init__(self, settings: AnomalyModel, dropout: AnomalyDropout, sizes: Sizes):
        super().__init__()
        self.memory = WindowMemory(settings.memory, sizes.window, sizes.targets)

    def forward(self, source: SeriesSource, weights: bool = False, places: Int[Tensor, " batch"] | None = None) -> Detection:
        expected, looked = self.memory(source, places, weights)
        return Detection(expected, weights={} if looked is None else {"memory": looked})


class Forecast(nn.Module):
    """Causal Transformer: each patch is forecast from those before it, and the first one is a learned constant.

    Weights are called "encoder.n"; their queries are the patches from which the next one is forecast.
    """

    def __init__(self, settings: AnomalyModel, dropout: AnomalyDropout, sizes: Sizes):
        super().__init__()
        size = settings.hidden_size
        self.patches = Patches(sizes, settings.patch, size)
        self.encoder = build_layers(settings, dropout, scope="causal")
        self.head = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, settings.patch * sizes.targets))
        self.first = nn.Parameter(torch.zeros(1, settings.patch * sizes.targets))
        self.targets = sizes.targets

    def forward(self, source: SeriesSource, weights: bool = False, places: Int[Tensor, " batch"] | None = None) -> Detection:
        data, keep = self.patches(source), self.patches.keep(source)
        data, looks = run_layers(self.encoder, data, keep, weights)
        forecasts = self.head(data[:, :-1])
        expected = torch.cat((self.first.expand(len(data), 1, -1), forecasts), 1)
        return Detection(expected.reshape(len(data), -1, self.targets), weights=looks)


class Association(nn.Module):
    """Anomaly Transformer: the discrepancy between the prior and the series association of each patch.

        S = softmax(q kᵀ / √d)        P_ij ∝ exp(-(j - i)² / (2 σ_i²)) / σ_i        each row of P adds up to 1
        AssDis(P, S) = mean over layers of KL(P_i ‖ S_i) + KL(S_i ‖ P_i)
        loss = ‖x - x̂‖² - λ ‖AssDis‖₁        minimised over P with S fixed (sign +), maximised over S with P fixed
        score = softmax(-AssDis) ⊙ ‖x_i - x̂_i‖²        over the patches of a window

    Xu et al. 2022, https://arxiv.org/abs/2110.02642, equations 2 to 6. Unlike the paper, positions are patches
    (model.patch=1: steps), and σ is the same for all columns. Weights are called "encoder.n" (S) and "prior.n" (P).
    """

    def __init__(self, settings: AnomalyModel, dropout: AnomalyDropout, sizes: Sizes):
        super().__init__()
        size = settings.hidden_size
        self.patches = Patches(sizes, settings.patch, size)
        self.encoder = build_layers(settings, dropout)
        self.widths = nn.ModuleList(nn.Linear(size, settings.heads) for _ in range(settings.layers))
        self.head = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, settings.patch * sizes.targets))
        self.targets, self.weight, self.temperature = sizes.targets, settings.association_weight, settings.temperature

    def forward(self, source: SeriesSource, weights: bool = False, places: Int[Tensor, " batch"] | None = None) -> Detection:
        data, keep = self.patches(source), self.patches.keep(source)
        looks, measured, learned, fixed = dict[str, Weights](), [], [], []
        for number, (layer, width) in enumerate(zip(self.encoder, self.widths, strict=True)):
            prior = prior_association(width(data), keep)
            data, series = layer(data, keep, True)
            looks |= {f"encoder.{number}": series, f"prior.{number}": prior}
            measured.append(discrepancy(prior, series))
            learned.append(discrepancy(prior, series.detach()))
            fixed.append(discrepancy(prior.detach(), series))
        expected = self.head(data).reshape(len(data), -1, self.targets)
        penalty = self.weight * (torch.stack(learned).mean() - torch.stack(fixed).mean())
        by_step = torch.stack(measured).mean(0).repeat_interleave(self.patches.patch, 1)
        return Detection(expected, by_step, penalty, looks if weights else {})


def prior_association(widths: Float[Tensor, "batch patches heads"], keep: Tensor) -> Weights:
    """Gaussian kernel of the distance of two patches, whose width each patch learns; rows add up to 1.

    The width is 3^sigmoid(5 w) - 1, from 0 to 2, as in the authors' code.
    """
    width = torch.pow(3.0, torch.sigmoid(5 * widths) + 1e-5) - 1
    places = torch.arange(widths.shape[1], device=widths.device, dtype=widths.dtype)
    distance = (places[:, None] - places[None]).square()
    kernel = torch.exp(-distance / (2 * width.mT[..., None].square())) / width.mT[..., None]
    kernel = kernel * keep[:, None, None]
    return kernel / kernel.sum(-1, keepdim=True).clamp_min(TINY)


def discrepancy(prior: Weights, series: Weights) -> Float[Tensor, "batch patches"]:
    """Symmetrised Kullback-Leibler divergence of two associations, the mean over heads."""
    logs = (prior + TINY).log() - (series + TINY).log()
    return ((prior - series) * logs).sum(-1).mean(1)


def attend(
    attention: Any, queries: Float[Tensor, "queries size"], encoded: Encoded, weights: bool
) -> tuple[Float[Tensor, "batch queries size"], Weights | None]:
    """Context of learned queries, the same for all rows of a batch, and the weights where they are asked for."""
    memory = attention.remember(encoded)
    query = queries.expand(len(encoded.data), -1, -1)
    attended = attention(query, memory, attention.start(memory), weights=weights)
    return attended.context, attended.weights


NETWORKS: dict[str, type[nn.Module]] = {
    "reconstruction": Reconstruction,
    "memory": Memory,
    "forecast": Forecast,
    "association": Association,
}
"""Networks by the name of the setting."""


class Detector(nn.Module):
    """A network, the detectors that it is compared with, and the thresholds of all.

    k-means and PCA have no gradient: what they know is in buffers, which are fitted before the training.
    """

    names = ("model", "k_means", "pca", "random")
    """Rows of a table."""

    def __init__(self, settings: AnomalyModel, dropout: AnomalyDropout, sizes: Sizes):
        super().__init__()
        self.network = NETWORKS[settings.detector](settings, dropout, sizes)
        self.reduce, self.aggregate, self.temperature = settings.reduce, settings.aggregate, settings.temperature
        window = settings.baseline_window or sizes.window
        self.k_means = KMeans(settings.clusters, window * sizes.targets)
        self.pca = Pca(window * sizes.targets, settings.variance)
        self.thresholds: Tensor
        self.register_buffer("thresholds", torch.full((len(self.names),), torch.inf))

    def forward(self, source: SeriesSource, weights: bool = False, places: Int[Tensor, " batch"] | None = None) -> Detection:
        """Expected values of windows; `weights` asks for those of the attentions.

        `places` are those of the ends of windows of the training rows, which a memory must not expect from themselves.
        """
        detection: Detection = self.network(source, weights, places)
        return detection

    def score(self, source: SeriesSource) -> Float[Tensor, "batch time"]:
        """Score of each step of each window: its squared error, 0 where nothing was observed.

        With model.aggregate=window all steps have the root of the mean error of the window.
        """
        detection = self.network(source)
        errors = (source.data - detection.expected).square() * source.observed
        error = errors.amax(-1) if self.reduce == "max" else errors.sum(-1) / source.observed.sum(-1).clamp_min(1)
        if detection.discrepancy is not None:
            length = detection.discrepancy.shape[-1]
            error = error * functional.softmax(-self.temperature * detection.discrepancy, -1) * length
        if self.aggregate == "window":
            return error.mean(-1, keepdim=True).sqrt().expand_as(error)
        return error

    def threshold(self, name: str) -> float:
        """Threshold of one of the detectors."""
        return float(self.thresholds[self.names.index(name)])
