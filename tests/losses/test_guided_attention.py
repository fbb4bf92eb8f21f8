import math

import pytest
import torch

from regard.attention.types import Attended
from regard.config import Train
from regard.data.batch import shifted
from regard.losses.guided_attention import guided_attention_loss
from regard.losses.teacher_forcing import Teacher, teach
from regard.losses.types import Progress

from ..training.small import Copies, Network, Plain


def looked(*rows: list[float], name: str = "decoder.cross") -> dict[str, Attended]:
    weights = torch.tensor(rows)[None, None]
    return {name: Attended(torch.zeros(1, len(rows), 2), weights)}


def kept(length: int, of: int) -> torch.Tensor:
    return (torch.arange(of) < length)[None]


def test_looking_along_the_diagonal_costs_nothing():
    found = guided_attention_loss(looked([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]), kept(3, 3), kept(3, 3))
    assert found.item() == 0.0


def test_the_price_of_a_look_by_hand():
    price = 1 - math.exp(-(0.5**2) / (2 * 0.2**2))  # half a sentence away
    found = guided_attention_loss(looked([0.25, 0.75], [0.0, 1.0]), kept(2, 2), kept(2, 2))
    assert found.item() == pytest.approx(0.75 * price)


def test_sentences_of_unlike_length_have_a_diagonal_too_and_padding_is_no_part_of_them():
    rows = [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    price = 1 - math.exp(-(0.25**2) / (2 * 0.2**2))  # the second and the fourth of four tokens look a quarter back
    found = guided_attention_loss(looked(*rows), kept(2, 3), kept(4, 5))
    assert found.item() == pytest.approx(2 * price)


def test_heads_share_the_price_and_other_attentions_pay_none():
    one = looked([0.0, 1.0], [0.0, 1.0])
    both = one | looked([1.0, 0.0], [0.0, 1.0], name="decoder.1.cross") | looked([0.0, 1.0], [1.0, 0.0], name="decoder.self")
    assert guided_attention_loss(both, kept(2, 2), kept(2, 2)).item() == pytest.approx(
        guided_attention_loss(one, kept(2, 2), kept(2, 2)).item() / 2
    )


def test_it_is_weighed_and_added():
    model, batch = Network(dropout=0.0), Copies().batch(0)
    plain, charged = teach(model, batch), teach(model, batch, diagonal=0.5)
    attended = model(batch.source, shifted(batch.target.data), weights=True).attended
    far = guided_attention_loss(attended, batch.source.keep, batch.target.keep)
    assert far.item() > 0
    assert charged.total.item() == pytest.approx((plain.total + 0.5 * far).item())
    assert charged.parts["guided_attention"].item() == pytest.approx(far.item())


def test_a_teacher_charges_what_its_settings_say():
    model, batch = Network(dropout=0.0), Copies().batch(0)
    taught = Teacher(Train(guided_attention=0.5), model)(model, batch, Progress(0, 1))
    assert taught.total.item() == pytest.approx(teach(model, batch, diagonal=0.5).total.item())


def test_it_needs_an_attention_over_the_source():
    text = "train.guided_attention needs an attention over the source, and this model has none; set it to 0"
    with pytest.raises(ValueError, match=text):
        Teacher(Train(guided_attention=1.0), Plain())
    with pytest.raises(ValueError, match=text):
        guided_attention_loss(looked([1.0, 0.0], name="decoder.0.self"), kept(2, 2), kept(1, 1))
