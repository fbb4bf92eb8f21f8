import torch
from torch.testing import assert_close

from regard.data.image.batch import collate_images
from regard.tasks.classify.pooled_model import Pooled

from ...models.pictures.small import Tiny, blank, wider


def test_all_places_with_a_picture_count_alike():
    model = Pooled(Tiny(), 4).eval()
    pictures = collate_images([torch.rand(3, 16, 16), torch.rand(3, 8, 16)])
    answer = model(pictures, weights=True)
    encoded = model.encoder(pictures)
    weights = answer.weights["pooled"]
    assert weights.shape == (2, 1, 1, 4)
    assert weights[1].flatten().tolist() == [0.5, 0.5, 0, 0]
    assert_close(answer.logits, model.output((weights[:, 0] @ encoded.data)[:, 0]))
    assert not model(pictures).weights


def test_padding_changes_nothing():
    model, pictures = Pooled(Tiny(), 4).eval(), blank()
    assert_close(model(wider(pictures)).logits, model(pictures).logits, atol=1e-5, rtol=1e-5)
