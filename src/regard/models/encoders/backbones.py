"""Factory of picture encoders by name: "resnet", "densenet", "vit"."""

from typing import Any, Protocol, runtime_checkable

from regard.attention.types import Encoded
from regard.data.image.batch import Images
from regard.models.encoders.densenet import Dense
from regard.models.encoders.resnet import Residual
from regard.models.encoders.vit import Patches

KINDS = ("resnet", "densenet", "vit")
STAGES = 4


@runtime_checkable
class ImageEncoder(Protocol):
    """Pictures in, a feature map out: Encoded.data holds vectors of `size`, one for each `stride` x `stride` pixels."""

    size: int
    stride: int

    def __call__(self, pictures: Images) -> Encoded: ...


def build_image_encoder(
    kind: str,
    channels: int,
    size: int,
    *,
    attention: str = "none",
    layers: int | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> Residual | Dense | Patches:
    """Build the picture encoder called `kind` for so many channels, with feature vectors of `size`.

    `attention` names one inside a CNN; vit has self-attention instead. `layers` is the number of blocks in each of four
    stages, of layers in each of three dense blocks, or of Transformer layers; None: the encoder's default. Options are those
    of the class.
    """
    if kind == "resnet":
        stages = {} if layers is None else {"stages": (layers,) * STAGES}
        return Residual(channels, size, attention=attention, dropout=dropout, **stages | options)
    deep = {} if layers is None else {"layers": layers}
    if kind == "densenet":
        return Dense(channels, size, attention=attention, dropout=dropout, **deep | options)
    if kind != "vit":
        raise ValueError(f"an encoder of pictures needs to be one of {', '.join(KINDS)}, got {kind!r}")
    if attention != "none":
        raise ValueError(
            f"vit has no CNN for the attention {attention!r} to stand in; leave it out, or choose resnet or densenet"
        )
    return Patches(channels, size, dropout=dropout, **deep | options)
