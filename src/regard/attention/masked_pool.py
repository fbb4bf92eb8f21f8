"""Feature maps of which only some places hold something: what is said of a map is said of those places alone."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Image = Float[Tensor, "batch channels height width"]
Keep = Bool[Tensor, "batch height width"] | None
"""True where there is something; None: everywhere."""
Row = Float[Tensor, "batch channels"]


def hide(image: Image, keep: Keep) -> Image:
    """The map with zeros outside `keep`, whatever stood there: to a convolution it looks like the border.

    Where all is kept it is the map itself, and no copy of it.
    """
    return image if keep is None or everywhere(keep) else image.masked_fill(~keep[:, None], 0.0)


def everywhere(keep: Bool[Tensor, "batch height width"]) -> bool:
    """Whether all places are kept; False where that cannot be said, or where a GPU would have to be waited for."""
    return not keep.is_cuda and not torch.compiler.is_compiling() and bool(keep.all())


def mean(image: Image, keep: Keep) -> Row:
    """The mean of each channel over the kept places; 0 where there are none."""
    found = hide(image, keep).mean((2, 3))  # which adds up half precision in single
    return found if keep is None else found * share(keep, found.dtype).to(found.dtype)[:, None]


def largest(image: Image, keep: Keep) -> Row:
    """The largest number of each channel at the kept places; 0 where there are none."""
    if keep is None:
        return image.amax((2, 3))
    found = lowest(image, keep).amax((2, 3))
    return found.masked_fill(~keep.flatten(1).any(1)[:, None], 0.0)


def lowest(image: Image, keep: Keep) -> Image:
    """The map with the least of all numbers outside `keep`, where nobody looks for the largest."""
    return image if keep is None else image.masked_fill(~keep[:, None], torch.finfo(image.dtype).min)


def share(keep: Bool[Tensor, "batch height width"], dtype: torch.dtype = torch.float32) -> Float[Tensor, " batch"]:
    """By what a mean over all places, zeros among them, is multiplied to be one over the kept places.

    It is as precise as `dtype`, and single at least.
    """
    return keep[0].numel() / keep.flatten(1).sum(1).clamp_min(1).to(torch.promote_types(dtype, torch.float32))
