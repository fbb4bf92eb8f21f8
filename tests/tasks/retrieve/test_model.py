import torch
from torch.testing import assert_close

from regard.data.batch import pad
from regard.data.image.batch import collate_images
from regard.models.encoders.resnet import Residual
from regard.models.encoders.transformer import Transformer
from regard.tasks.retrieve.model import Matching
from regard.tasks.retrieve.reranker import Reranking


def model(closer=True):
    torch.manual_seed(0)
    pictures, texts = Residual(3, 8, stages=(1, 1, 1)), Transformer(20, 8, layers=1, heads=2)
    reranking = Reranking(8, 8, 8, layers=1, heads=2) if closer else None
    return Matching(pictures, texts, 6, reranking=reranking).eval()


PICTURES = collate_images([torch.rand(3, 16, 16), torch.rand(3, 16, 24)], 8)
TEXTS = pad([[5, 6, 2], [7, 2]])


def test_a_fit_is_what_the_towers_say_and_what_a_closer_look_adds():
    made = model()
    torch.nn.init.constant_(made.share, 0.5)
    seen, read = made.see(PICTURES), made.read(TEXTS)
    closer = made.reranking(seen.encoded, read.encoded).scores
    assert closer.all()
    assert_close(made.paired(PICTURES, TEXTS).scores, made(PICTURES, TEXTS).diagonal() + closer / 2)


def test_without_a_closer_look_it_is_what_the_towers_say():
    made = model(closer=False)
    assert_close(made.paired(PICTURES, TEXTS).scores, made(PICTURES, TEXTS).diagonal())


def test_a_closer_look_counts_for_nothing_before_anything_is_learned():
    made = model()
    assert_close(made.paired(PICTURES, TEXTS).scores, made(PICTURES, TEXTS).diagonal())


def test_it_says_where_it_looked_by_the_paths_of_its_modules():
    looks = model().paired(PICTURES, TEXTS, weights=True).weights
    assert {name: tuple(each.shape) for name, each in looks.items()} == {
        "picture.query.attention": (2, 4, 1, 6),
        "text.query.attention": (2, 4, 1, 3),
        "reranking.layers.0.cross": (2, 4, 3, 6),
    }
    assert not model().paired(PICTURES, TEXTS).weights


def test_nearness_is_compared_in_full_precision_whatever_the_rest_is_computed_in():
    made = model()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = made.paired(PICTURES, TEXTS)
        logits = made(PICTURES, TEXTS)
    assert found.scores.dtype == logits.dtype == torch.float32
