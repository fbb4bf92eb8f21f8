import pytest
import torch
from torch.testing import assert_close

from regard.data.batch import pad
from regard.data.image.preprocess import ImageCodec
from regard.data.image.types import ImageExample
from regard.models.encoders.resnet import Residual
from regard.models.encoders.transformer import Transformer
from regard.tasks.retrieve.model import Matching
from regard.tasks.retrieve.ranking import encode_pictures, encode_texts, merge_rankings, score_pairs, select_nearest
from regard.tasks.retrieve.reranker import Reranking

CODEC = ImageCodec(height=32, width=32)
PICTURES = [ImageExample(torch.rand(3, 8 + 8 * (n % 2), 16)) for n in range(5)]
TEXTS = [[5, 6, 7, 2], [5, 2], [8, 9, 2]]


def batches(pictures):
    return CODEC.loader(pictures, 600).in_order()  # two of them or three at a time


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    encoders = Residual(3, 8, stages=(1, 1, 1)), Transformer(20, 8, layers=1, heads=2)
    return Matching(*encoders, 6, reranking=Reranking(8, 8, 8, layers=1, heads=2)).eval()


def test_vectors_come_in_the_order_of_what_was_asked(model):
    alone = torch.cat([encode_pictures(model, [each], batches) for each in PICTURES])
    assert_close(encode_pictures(model, PICTURES, batches), alone)
    assert_close(encode_texts(model, TEXTS), torch.cat([encode_texts(model, [each]) for each in TEXTS]))


def test_pairs_fit_as_they_do_alone_whatever_is_looked_at_beside_them(model):
    pairs = [(4, 0), (0, 2), (4, 1), (2, 0), (0, 0)]
    with torch.no_grad():
        alone = [model.paired(CODEC.collate([PICTURES[picture]]), pad([TEXTS[text]])).scores for picture, text in pairs]
    assert_close(score_pairs(model, PICTURES, TEXTS, pairs, batches), torch.cat(alone), rtol=1e-4, atol=1e-5)


def test_the_nearest_are_looked_at_again():
    logits = torch.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 1.0]])
    assert select_nearest(logits, 2).tolist() == [[True, False, True], [False, True, True]]
    assert select_nearest(logits, 9).all()


def test_what_was_looked_at_comes_first_in_the_order_of_that_look():
    logits = torch.tensor([[3.0, 1.0, 2.0, 0.0]])
    closer = torch.tensor([[-9.0, 1.0, -5.0, 0.0]])
    looked = torch.tensor([[True, False, True, False]])
    assert merge_rankings(logits, closer, looked).argsort(descending=True).tolist() == [[2, 0, 1, 3]]
