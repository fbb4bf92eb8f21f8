"""The mean of a map: the classifier without attention, which the others are compared with."""

from torch import nn

from regard.data.image.batch import Images
from regard.models.encoders import find_summary
from regard.models.readout import NO_WEIGHTS, Answer, ImageEncoder


class Pooled(nn.Module):
    """All places count alike.

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
        kept = encoded.data.new_ones(encoded.data.shape[:2]) if encoded.keep is None else encoded.keep.to(logits.dtype)
        return Answer(logits, {"pooled": (kept / kept.sum(1, keepdim=True).clamp_min(1))[:, None, None]})
