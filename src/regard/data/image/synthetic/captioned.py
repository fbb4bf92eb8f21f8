"""A scene with its caption as a picture that is drawn when it is asked for, the same each time."""

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.image.synthetic.captions import Caption, Captioned
from regard.data.image.synthetic.words import Language
from regard.data.records import Record


@dataclass(frozen=True)
class Drawing:
    """Draws a scene, at so many pixels a side, and knows what is said of it."""

    captioned: Captioned
    size: int = 64
    language: Language = "english"

    def __call__(self) -> Float[Tensor, "3 height width"]:
        return self.captioned.picture(self.size)

    @property
    def caption(self) -> Caption:
        """The caption, each word of which knows the things that it names."""
        return self.captioned.english if self.language == "english" else self.captioned.chinese

    @property
    def record(self) -> Record:
        """The caption as a target, and a name for the picture as its source."""
        return self.captioned.record(self.language)

    def region(self, things: tuple[int, ...]) -> Bool[Tensor, "height width"]:
        """The pixels in the boxes of some of its things."""
        return self.captioned.scene.region(things, self.size, self.size)
