"""Write a picture: PNG, which loses nothing."""

from io import BytesIO

import numpy as np
from jaxtyping import Shaped
from torch import Tensor

from regard.data.image.types import Picture


def png(picture: Shaped[Tensor, "channels height width"]) -> bytes:
    """A picture of 1 channel or 3, of bytes or of floats from 0 to 1, as a file."""
    from PIL import Image

    pixels = pixels_of(picture)
    content = BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(content, "PNG")
    return content.getvalue()


def pixels_of(picture: Picture) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
    """A picture as bytes, (height, width, channels): what viewers and files want."""
    bytes_ = (picture.clamp(0, 1) * 255).round().byte() if picture.is_floating_point() else picture
    return np.ascontiguousarray(bytes_.movedim(-3, -1).cpu().numpy())
