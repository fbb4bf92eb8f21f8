"""Loss of a forecaster: that of its output, summed over the observed values of the horizons."""

from typing import Any

from regard.config import Train
from regard.data.modality import AnyBatch
from regard.data.series.batch import SeriesBatch
from regard.losses.types import Loss, Progress
from regard.models.decoders.scheduled_sampling import sampling_probability


class ForecastLoss:
    """Loss of a batch of windows, with teacher forcing or scheduled sampling where the network has a decoder."""

    def __init__(self, train: Train):
        self.train = train

    @property
    def capturable(self) -> bool:
        """True without scheduled sampling, whose probability changes from step to step."""
        return self.train.scheduled_sampling == "none"

    def __call__(self, model: Any, batch: AnyBatch, progress: Progress) -> Loss:
        """Sum of the losses of the observed values, and their number."""
        assert isinstance(batch, SeriesBatch), "series come in batches of windows"
        assert batch.target is not None, "windows of a training have horizons"
        assert batch.observed is not None, "a target has a mask"
        sampling = sampling_probability(self.train, progress.step)
        losses = model.losses(batch.source, batch.target, batch.observed, sampling)
        return Loss(losses.masked_fill(~batch.observed, 0.0).sum(), batch.observed.sum())
