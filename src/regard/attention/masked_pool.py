"""Masked pooling of feature maps: mean and maximum over the kept positions alone."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Image = Float[Tensor, "batch channels height width"]
Keep = Bool[Tensor, "batch height width"] | None
"""Padding mask: True at the kept positions; None keeps all."""
Row = Float[Tensor, "batch channels"]


def zero_padding(image: Image, keep: Keep) -> Image:
    """The map with zeros outside `keep`, which a convolution sees like its zero padding.

    Where all positions are kept it is the map itself, not a copy.
    """
    return image if keep is None or keeps_all(keep) else image.masked_fill(~keep[:, None], 0.0)


def keeps_all(keep: Bool[Tensor, "batch height width"]) -> bool:
    """True if all positions are known to be kept; False where that is unknown or would synchronise with a GPU."""
    return not keep.is_cuda and not torch.compiler.is_compiling() and bool(keep.all())


def compute_masked_mean(image: Image, keep: Keep) -> Row:
    """The mean of each channel over the kept positions; 0 where there are none."""
    mean = zero_padding(image, keep).mean((2, 3))  # it sums half precision in float32
    return mean if keep is None else mean * compute_mean_factor(keep, mean.dtype).to(mean.dtype)[:, None]


def compute_masked_max(image: Image, keep: Keep) -> Row:
    """The maximum of each channel over the kept positions; 0 where there are none."""
    if keep is None:
        return image.amax((2, 3))
    maximum = fill_lowest(image, keep).amax((2, 3))
    return maximum.masked_fill(~keep.flatten(1).any(1)[:, None], 0.0)


def fill_lowest(image: Image, keep: Keep) -> Image:
    """The map with the lowest finite number outside `keep`, so that a maximum ignores it."""
    return image if keep is None else image.masked_fill(~keep[:, None], torch.finfo(image.dtype).min)


def compute_mean_factor(
    keep: Bool[Tensor, "batch height width"], dtype: torch.dtype = torch.float32
) -> Float[Tensor, " batch"]:
    """Factor that turns a mean over all positions, zeros among them, into one over the kept positions.

    It has the precision of `dtype`, but at least float32.
    """
    return keep[0].numel() / keep.flatten(1).sum(1).clamp_min(1).to(torch.promote_types(dtype, torch.float32))
