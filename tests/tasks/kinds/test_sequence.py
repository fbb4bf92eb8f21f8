import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from regard.config import Search, Train
from regard.data.batch import Batch, pad
from regard.data.table import Record
from regard.errors import ConfigError
from regard.models.types import Step
from regard.tasks import find
from regard.tasks.kinds.sequence import build_risk, check_monitor, evaluate
from regard.tasks.kinds.text import TextConfig


class Even(nn.Module):
    """Finds every one of eight tokens equally likely."""

    def __init__(self):
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(1))

    def forward(self, source, target, **options):
        return Step(self.nothing * torch.ones(*target.shape, 8), (), {})


def test_the_loss_is_that_of_a_token_over_all_batches():
    batches = [([0], Batch(pad([[5, 2]]), pad([[5, 6, 2]]))), ([1], Batch(pad([[5, 2]]), pad([[2]])))]
    figures = evaluate(Even(), SimpleNamespace(in_order=lambda: batches))
    assert figures["loss"] == pytest.approx(math.log(8))
    assert figures["perplexity"] == pytest.approx(8)


def test_what_decides_has_to_be_measured_by_the_task_or_its_family():
    valid, task = [SimpleNamespace(record=Record("a", "b c d e", "x:1"))], find("translate")
    config = TextConfig(train=Train(monitor="looks"))
    check_monitor(task, config, valid, ["looks"])
    with pytest.raises(ConfigError, match=r"train\.monitor needs to be one of loss, perplexity, bleu, .*, got 'looks'"):
        check_monitor(task, config, valid)


def test_a_risk_is_there_where_the_config_asks_for_one():
    assert build_risk(find("translate"), TextConfig(), None) is None
    made = build_risk(find("translate"), TextConfig(train=Train(sequence_loss="minimum_risk")), SimpleNamespace(decode=str))
    assert made.reward.metric == "chrf"


def test_outputs_of_a_risk_may_be_as_long_as_those_of_a_search():
    batch, train = Batch(pad([[5, 6, 2]]), pad([[5, 2]])), Train(sequence_loss="minimum_risk")
    for search, most in [
        (Search(max_length=40), 19),
        (Search(max_length=40, max_length_ratio=1.0), 13),
        (Search(max_length=40, max_length_ratio=0.0), 40),
    ]:
        made = build_risk(find("translate"), TextConfig(train=train, search=search), SimpleNamespace(decode=str))
        assert made.limits(batch.source) == [most]
