"""Image classifiers: one learned query for each label, and the mean of the feature map as the baseline without attention."""

from functools import partial

import torch
from torch import nn

from regard.data.image.batch import Images
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.encoders import find_summary
from regard.models.layers.learned_queries import LearnedQueries
from regard.models.readout import NO_WEIGHTS, Answer, ImageEncoder, collect_weights


class Labels(nn.Module):
    """Query2Label: each label has a learned query that attends to the feature map, and a logit of its context.

        c_l = attention(q_l, map),    logit_l = w_l · norm(c_l) + b_l

    As in Liu et al. 2021, https://arxiv.org/abs/2107.10834, with one attention of any kind in the place of a decoder of
    several layers. Weights are called "queries.attention": one row for each label.
    The loss decides between single-label and multi-label (losses/classification.py).
    """

    def __init__(
        self,
        encoder: ImageEncoder,
        labels: int,
        size: int | None = None,
        attention: AttentionFactory = partial(build_attention, "transformer"),
    ):
        super().__init__()
        size = size or encoder.size
        self.encoder = encoder
        self.queries = LearnedQueries(labels, encoder.size, size, attention)
        self.norm = nn.LayerNorm(size)
        self.weight = nn.Parameter(torch.empty(labels, size))
        with torch.no_grad():
            self.weight.normal_().mul_(size**-0.5)
        self.bias = nn.Parameter(torch.zeros(labels))

    def forward(self, pictures: Images, *, weights: bool = False) -> Answer:
        attended = self.queries(self.encoder(pictures), weights)
        logits = (self.norm(attended.context) * self.weight).sum(-1) + self.bias
        return Answer(logits, collect_weights({"queries.attention": attended}) if weights else NO_WEIGHTS)


class Pooled(nn.Module):
    """Global average pooling: the baseline without attention.

        logits = W mean(map) + b

    Lin, Chen and Yan 2013, https://arxiv.org/abs/1312.4400, call it global average pooling. Places without a picture do not
    count.
    Weights are called "pooled": the same share for each of them.
    """

    def __init__(self, encoder: ImageEncoder, labels: int, dropout: float = 0.0):
        super().__init__()
        self.encoder = encoder
        self.drop = nn.Dropout(dropout)
        self.output = nn.Linear(encoder.size, labels)

    def forward(self, pictures: Images, *, weights: bool = False) -> Answer:
        encoded = self.encoder(pictures)
        logits = self.output(self.drop(find_summary(encoded)))
        if not weights:
            return Answer(logits, NO_WEIGHTS)
        counts = encoded.data.new_ones(encoded.data.shape[:2]) if encoded.keep is None else encoded.keep.to(logits.dtype)
        return Answer(logits, {"pooled": (counts / counts.sum(1, keepdim=True).clamp_min(1))[:, None, None]})
