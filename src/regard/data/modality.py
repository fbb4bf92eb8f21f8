"""What the training loop sees of a modality: batches by number."""

from typing import Protocol, runtime_checkable

from regard.data.batch import Batch
from regard.data.image.types import ImageBatch

AnyBatch = Batch | ImageBatch
"""Of texts, or of pictures."""


@runtime_checkable
class Batches(Protocol):
    """Batches without end, any of them by number: a pure function, so that a training's place is one integer."""

    def batch(self, step: int) -> AnyBatch: ...
