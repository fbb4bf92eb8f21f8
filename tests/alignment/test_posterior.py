from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch.testing import assert_close

from regard.alignment.soft import posterior_weights
from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import Batch, pad, shifted
from regard.models.seq2seq import build

BATCH = Batch(pad([[4, 5, 6, 2], [7, 8, 2]]), pad([[5, 4, 2], [6, 6, 2]]))
KINDS = {"recurrent": "bahdanau+marginal", "convolution": "additive+marginal", "transformer": "additive+marginal"}


def made(kind, name=None, **settings):
    attention = AttentionPart(name or KINDS[kind], heads=1)
    model = Model(encoder=kind, decoder=kind, attention=attention, hidden_size=8, heads=2, **settings)
    return build(model, Dropout(0.0, 0.0), 9, 9, joint=False).double().eval()


@dataclass(frozen=True)
class Only:
    """Looks at one key, whatever the scores are."""

    key: int
    sums_to_one: ClassVar[bool] = True

    def __call__(self, scores, allowed):
        return torch.zeros_like(scores).index_fill(-1, torch.tensor([self.key]), 1.0)


def likelihood(model):
    output = model(BATCH.source, shifted(BATCH.target.data)).output
    return output.log_softmax(-1).gather(-1, BATCH.target.data[..., None])[..., 0]


@pytest.mark.parametrize("kind", ["recurrent", "convolution", "transformer"])
def test_it_follows_bayes_rule_from_what_each_key_alone_would_write(kind):
    model = made(kind, **({"input_feeding": False, "order": "luong"} if kind == "recurrent" else {}))
    [(name, found)] = posterior_weights(model, BATCH).items()
    prior = model(BATCH.source, shifted(BATCH.target.data), weights=True).attended[name].weights.detach()
    cross = model.get_submodule(name)
    alone = []
    for key in range(4):
        cross.normalise = Only(key)
        alone.append(likelihood(model).detach())
    joint = prior[:, 0] * torch.stack(alone, dim=-1).exp()
    assert_close(found[:, 0], joint / joint.sum(-1, keepdim=True))
    assert not torch.allclose(found, prior)


def test_with_input_feeding_what_a_look_changes_later_is_no_part_of_it():
    found = posterior_weights(made("recurrent"), BATCH)["decoder.cross"]
    assert_close(found.sum(-1), torch.ones(2, 1, 3, dtype=torch.float64))
    assert (found >= 0).all()
    assert (found[1, 0, :, 3] == 0).all()


def test_of_any_other_attention_it_is_the_weights_themselves():
    model = made("recurrent", "additive")
    found = posterior_weights(model, BATCH)["decoder.cross"]
    assert_close(found, model(BATCH.source, shifted(BATCH.target.data), weights=True).attended["decoder.cross"].weights)
    assert not found.requires_grad
