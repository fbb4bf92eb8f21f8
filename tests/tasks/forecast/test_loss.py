import pytest
import torch

from regard.config import Train
from regard.losses.types import Progress
from regard.tasks.forecast.loss import ForecastLoss

from .tables import build


def test_values_that_are_missing_count_for_nothing(sales):
    experiment, _ = build(sales)
    batch = experiment.train.batch(0)
    hidden = batch.observed.clone()
    hidden[:, 1:] = False
    changed = batch._replace(observed=hidden, target=batch.target._replace(data=batch.target.data + 1000 * ~hidden))
    loss = experiment.loss(experiment.model.eval(), changed, Progress(0, 1))
    assert loss.tokens == hidden.sum()
    parts = experiment.model.losses(batch.source, batch.target, batch.observed)
    torch.testing.assert_close(loss.total, parts[:, 0][hidden[:, 0]].sum())


def test_scheduled_sampling_is_no_graph():
    assert ForecastLoss(Train()).capturable
    assert not ForecastLoss(Train(scheduled_sampling="linear")).capturable


def test_scheduled_sampling_changes_the_loss_of_a_recurrent_decoder(sales):
    forced, sampled = (
        build(sales, "model.network=recurrent", f"train.scheduled_sampling={kind}")[0] for kind in ("none", "constant")
    )
    batch = forced.train.batch(0)
    losses = [each.loss(each.model.eval(), batch, Progress(0, 1)).total.item() for each in (forced, sampled)]
    assert losses[0] != pytest.approx(losses[1])
