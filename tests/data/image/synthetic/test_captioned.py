import torch

from regard.data.image.synthetic.captioned import Drawing
from regard.data.image.synthetic.captions import draw


def test_it_draws_the_same_picture_each_time_and_says_what_is_on_it():
    [captioned, *_] = draw(20)[0]
    english, chinese = Drawing(captioned, 32), Drawing(captioned, 32, "chinese")
    assert torch.equal(english(), captioned.picture(32))
    assert torch.equal(english(), english())
    assert english.caption == captioned.english
    assert chinese.record.target == captioned.chinese.text


def test_its_regions_are_in_pixels():
    [captioned, *_] = draw(20)[0]
    drawing = Drawing(captioned, 32)
    region = drawing.region(tuple(range(len(captioned.scene.things))))
    assert region.shape == (32, 32)
    coloured = (drawing() < 0.99).any(0)
    assert (coloured & ~region).sum() == 0
