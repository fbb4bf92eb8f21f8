import pytest
import torch

from regard.config import ImageTextData, ImageToTextModel
from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.interop.onnx.sources import Field, Sizes, below_limit, default_sizes, limit_sizes, random_source, source_limit
from regard.tasks import translate
from regard.tasks.caption import task

from .models import sighted, small


def test_a_task_says_how_large_its_sources_may_be():
    assert source_limit(translate.Config()) == translate.Config().data.max_source_length
    config = task.Config(data=ImageTextData(height=33, width=64), model=ImageToTextModel(stride=8))
    assert source_limit(config) == Field(5, 8, 8)
    assert Field(5, 8, 8).pixels == (40, 64)


def test_a_graph_is_drawn_at_sizes_that_are_neither_one_nor_the_largest():
    assert [default_sizes(most).keys for most in (2, 3, 4, 6, 256)] == [2, 2, 3, 5, 5]
    found = [default_sizes(Field(*most, 8)) for most in ((2, 9), (3, 4), (32, 32))]
    assert [(each.keys, each.columns) for each in found] == [(2, 4), (2, 3), (3, 4)]
    assert below_limit(1) == 2


def test_sizes_stay_within_what_a_model_reads():
    assert limit_sizes(Sizes(2, 5, 11, 6, 7), 4) == Sizes(2, 5, 4, 6, 7)
    assert limit_sizes(Sizes(2, 5, 11, 6, 7), Field(3, 9, 8)) == Sizes(2, 5, 3, 6, 7)
    assert limit_sizes(Sizes(2, 5, 11, 6, 7), Field(12, 2, 8)) == Sizes(2, 5, 11, 6, 2)


def test_texts_are_drawn_for_a_model_that_reads_text():
    found = random_source(small("recurrent", "recurrent"), Sizes(3, 1, 6), torch.Generator().manual_seed(0))
    assert isinstance(found, Padded)
    assert found.keep[0].all()
    assert not found.data[~found.keep].any()


@pytest.mark.parametrize("stride", [5, 8])
def test_pictures_are_drawn_in_whole_places_for_a_model_that_sees(stride):
    model, _ = sighted("vit", "recurrent", stride=stride)
    found = random_source(model, Sizes(sources=4, keys=3, columns=2), torch.Generator().manual_seed(0))
    assert isinstance(found, Images)
    assert found.data.shape == (4, 3, 3 * stride, 2 * stride)
    assert found.keep[0].all()
    assert not found.keep.all()
    assert found.keep[:, 0, 0].all()  # each lies in its corner
    assert not found.data.masked_fill(found.keep[:, None], 0.0).any()
