"""Settings of classification."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.config import ImageData, ImageModel


@dataclass(frozen=True)
class ClassifyData(ImageData):
    """Tables of pictures or clips and their labels."""

    columns: ClassVar[tuple[str, str]] = ("image", "label")

    label: str = "2"
    """The column of the label, or of labels with commas between them: its name, or its number from 1."""
    multi_label: bool | None = None
    """Multi-label classification: a picture may have several labels or none. None: pictures of a table have one each."""
    clips: bool = False
    """Video classification: each input is a folder of pictures, which in the order of their names are the frames."""
    max_frames: int = 64
    """The most frames of a clip."""


@dataclass(frozen=True)
class ClassifyModel(ImageModel):
    """A classifier that attends to the feature map of a backbone, or a recurrent attention model (RAM) of glimpses."""

    glimpses: int = 0
    """Glimpses of the recurrent attention model (Mnih et al. 2014); 0: a backbone that sees the whole picture."""
    glimpse_size: int = 8
    """Side of a glimpse's smallest patch, in pixels."""
    glimpse_scales: int = 1
    """Patches of a glimpse, each twice as wide as the one before, all at one resolution."""
    core: Literal["relu", "lstm"] = "lstm"
    """Core network, whose state integrates the glimpses."""
    location_std: float = 0.1
    """Standard deviation of sampled locations while training, in half sides of the picture."""
    episodes: int = 1
    """Episodes of each picture in an update (Monte Carlo samples of REINFORCE)."""
    eval_episodes: int = 1
    """Episodes over which the prediction is averaged; the first is the one that is shown."""
