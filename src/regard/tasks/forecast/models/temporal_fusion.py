"""Temporal fusion transformer: variable selection, an LSTM over look-back and horizon, and interpretable attention."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.attend import attend
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import Scope
from regard.attention.scope.causal import Causal
from regard.attention.scope.padding import Padding
from regard.attention.score.scaled_dot import ScaledDot
from regard.config import Dropout
from regard.data.series.batch import SeriesSource
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.model import Horizon, Look, Looks, Sizes, StaticEmbedding, Values

Data = Float[Tensor, "*rows _"]


class GatedResidual(nn.Module):
    """Gated residual network: a small network whose output a gate may close.

        GRN(x, c) = norm(x + GLU(W₁ elu(W₂ x + W₃ c)))        GLU(z) = σ(W₄ z) ⊙ W₅ z

    Lim et al. 2021, equations 2 to 5.
    """

    def __init__(self, inputs: int, size: int, dropout: float, context: int = 0, outputs: int | None = None):
        super().__init__()
        outputs = size if outputs is None else outputs
        self.inner, self.outer = nn.Linear(inputs, size), nn.Linear(size, 2 * outputs)
        self.context = nn.Linear(context, size, bias=False) if context else None
        self.skip = nn.Identity() if inputs == outputs else nn.Linear(inputs, outputs)
        self.norm, self.dropout = nn.LayerNorm(outputs), nn.Dropout(dropout)

    def forward(self, data: Data, context: Data | None = None) -> Data:
        hidden = self.inner(data)
        if self.context is not None and context is not None:
            hidden = hidden + self.context(context)
        gated = functional.glu(self.outer(self.dropout(functional.elu(hidden))), -1)
        output: Data = self.norm(self.skip(data) + gated)
        return output


class VariableSelection(nn.Module):
    """Weights over variables at each step, and the sum of the variables by these weights.

        v = softmax(GRN([ξ_1; ...; ξ_m], c))        ξ = Σ_j v_j GRN_j(ξ_j)

    Lim et al. 2021, equations 6 to 8. ξ_j is a linear embedding of variable j; all share one GRN for their content.
    """

    def __init__(self, variables: int, size: int, dropout: float):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(variables, size) / size**0.5)
        self.bias = nn.Parameter(torch.zeros(variables, size))
        self.weigh = GatedResidual(variables, size, dropout, context=size, outputs=variables)
        self.content = GatedResidual(size, size, dropout)

    def forward(
        self, values: Float[Tensor, "batch time variables"], static: Float[Tensor, "batch size"]
    ) -> tuple[Float[Tensor, "batch time size"], Float[Tensor, "batch time variables"]]:
        weights = self.weigh(values, static[:, None].expand(-1, values.shape[1], -1)).softmax(-1)
        embedded = self.content(values[..., None] * self.gain + self.bias)
        return (weights[..., None] * embedded).sum(2), weights


class InterpretableAttention(nn.Module):
    """Multi-head attention whose heads share their values, so that the mean of their weights says where was looked.

        context = (1/H Σ_h A(Q W_h, K V_h)) V W_v W_o

    Lim et al. 2021, equations 13 to 16.
    """

    def __init__(self, size: int, heads: int, dropout: float):
        super().__init__()
        if size % heads:
            raise ValueError(f"interpretable attention needs a size that its heads divide, got {size} and {heads} heads")
        self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)
        self.value, self.outer = nn.Linear(size, size // heads), nn.Linear(size // heads, size, bias=False)
        self.heads, self.dropout = heads, dropout

    def forward(
        self,
        query: Float[Tensor, "batch queries size"],
        data: Float[Tensor, "batch keys size"],
        keep: Bool[Tensor, "batch keys"],
        weights: bool = False,
    ) -> tuple[Float[Tensor, "batch queries size"], Float[Tensor, "batch heads queries keys"] | None]:
        queries, keys = (self._split(part) for part in (self.query(query), self.key(data)))
        values = self.value(data)[:, None].expand(-1, self.heads, -1, -1)
        scope: Scope = Causal() & Padding(keep)
        options: dict[str, Any] = {"score": ScaledDot(), "normalise": Softmax(), "scope": scope}
        attended = attend(queries, keys, values, dropout=self.dropout if self.training else 0.0, weights=weights, **options)
        return self.outer(attended.context.mean(1)), attended.weights

    def _split(self, data: Float[Tensor, "batch time size"]) -> Float[Tensor, "batch heads time head"]:
        batch, time, size = data.shape
        return data.view(batch, time, self.heads, size // self.heads).transpose(1, 2)


class TemporalFusion(nn.Module):
    """Variable selection, LSTM encoder and decoder, static enrichment, and causal interpretable attention.

    Lim et al. 2021, https://arxiv.org/abs/1912.09363, sections 4.2 to 4.6. Attention is by lag, of each step of the horizon;
    the weights of variable selection are by variable. Unlike the paper, targets are forecast together, and static covariates
    are summed rather than selected.
    """

    def __init__(self, settings: ForecastModel, dropout: Dropout, sizes: Sizes):
        super().__init__()
        size, rate = settings.hidden_size, dropout.residual
        self.static = StaticEmbedding(sizes.static, size)
        self.past_variables = VariableSelection(2 * sizes.targets + sizes.past + sizes.known, size, rate)
        self.future_variables = VariableSelection(sizes.known, size, rate) if sizes.known else None
        self.encoder = nn.LSTM(size, size, settings.layers, batch_first=True, dropout=rate if settings.layers > 1 else 0.0)
        self.decoder = nn.LSTM(size, size, settings.layers, batch_first=True, dropout=rate if settings.layers > 1 else 0.0)
        self.local_gate, self.local_norm = nn.Linear(size, 2 * size), nn.LayerNorm(size)
        self.enrich = GatedResidual(size, size, rate, context=size)
        self.attention = InterpretableAttention(size, settings.heads, dropout.attention)
        self.attention_gate, self.attention_norm = nn.Linear(size, 2 * size), nn.LayerNorm(size)
        self.feedforward = GatedResidual(size, size, rate)
        self.output_gate, self.output_norm = nn.Linear(size, 2 * size), nn.LayerNorm(size)
        self.head = nn.Linear(size, sizes.targets * sizes.output)
        self.dropout = nn.Dropout(rate)
        self.sizes, self.layers = sizes, settings.layers

    def forward(
        self,
        values: Values,
        source: SeriesSource,
        target: Horizon | None = None,
        sampling: float = 0.0,
        looks: Looks | None = None,
    ) -> Float[Tensor, "batch horizon targets size"]:
        sizes, time = self.sizes, values.shape[1]
        static = self.static(source.static)
        missing = (~source.observed).to(values)
        read = torch.cat((values, source.past, source.known[:, :time], missing), -1)
        past, past_weights = self.past_variables(read, static)
        future = past.new_zeros(len(past), sizes.horizon, past.shape[-1])
        if self.future_variables is not None:
            future, _ = self.future_variables(source.known[:, time:], static)
        local = self._read_locally(past, future, static)
        enriched = self.enrich(local, static[:, None].expand(-1, local.shape[1], -1))
        keep = torch.cat((source.keep, source.keep.new_ones(len(past), sizes.horizon)), 1)
        ahead = enriched[:, time:]
        context, weights = self.attention(ahead, enriched, keep, weights=looks is not None)
        attended = self.attention_norm(ahead + self._gate(self.attention_gate, context))
        decoded = self.feedforward(attended)
        decoded = self.output_norm(local[:, time:] + self._gate(self.output_gate, decoded))
        if looks is not None and weights is not None:
            looks["attention"] = Look("horizon", "look-back", weights[..., :time])
            variables = sizes.targets + sizes.past + sizes.known
            selected = past_weights[..., :variables].mean(1, keepdim=True)
            looks["past_variables"] = Look("steps", "variables", selected[:, None])
        return self.head(decoded).unflatten(-1, (sizes.targets, sizes.output))

    def _read_locally(
        self,
        past: Float[Tensor, "batch time size"],
        future: Float[Tensor, "batch horizon size"],
        static: Float[Tensor, "batch size"],
    ) -> Float[Tensor, "batch times size"]:
        """LSTM over look-back and horizon, begun with the static covariates, and a gated skip around it."""
        start = static[None].expand(self.layers, -1, -1).contiguous()
        encoded, state = self.encoder(past, (start, torch.zeros_like(start)))
        decoded, _ = self.decoder(future, state)
        skipped, local = torch.cat((past, future), 1), torch.cat((encoded, decoded), 1)
        output: Tensor = self.local_norm(skipped + self._gate(self.local_gate, local))
        return output

    def _gate(self, layer: nn.Module, data: Data) -> Data:
        return functional.glu(layer(self.dropout(data)), -1)


def build(settings: ForecastModel, dropout: Dropout, sizes: Sizes) -> nn.Module:
    """The network of settings."""
    return TemporalFusion(settings, dropout, sizes)
