import base64
import gzip

import numpy as np
import pytest

from regard.viewer.html.pack import Pack, size


def test_a_tensor_comes_out_as_it_went_in():
    pack = Pack()
    array = np.arange(12, dtype=np.float16).reshape(3, 4)
    ref = pack.add(array)
    assert ref == {"data": "d0", "dtype": "f16", "shape": [3, 4]}
    assert gzip.decompress(base64.b64decode(pack.blocks["d0"])) == array.tobytes()


def test_equal_tensors_make_equal_pages():
    packs = [Pack(), Pack()]
    for pack in packs:
        pack.add(np.zeros((100, 100), np.uint8))
    assert packs[0].blocks == packs[1].blocks


def test_what_does_not_fit_is_refused_and_takes_nothing():
    pack = Pack(budget=200)
    noise = np.random.default_rng(0).integers(0, 255, 1000).astype(np.uint8)
    assert pack.offer(noise) is None
    assert pack.used == 0
    assert pack.offer(np.zeros(1000, np.uint8)) is not None
    assert 0 < pack.used <= 200


def test_what_was_tried_in_a_copy_can_be_taken_over():
    pack = Pack()
    pack.add(np.zeros(3, np.uint8))
    other = pack.copy()
    other.add(np.ones(3, np.uint8))
    assert list(pack.blocks) == ["d0"]
    pack.become(other)
    assert list(pack.blocks) == ["d0", "d1"]
    assert pack.used == sum(map(len, pack.blocks.values()))


def test_a_page_holds_no_other_numbers():
    with pytest.raises(TypeError, match=r"a page holds uint8, .*, got float64"):
        Pack().add(np.zeros(3))


@pytest.mark.parametrize(
    ("text", "bytes_"), [("16MB", 16_000_000), ("512 KiB", 524_288), ("1.5kb", 1500), (77, 77), ("99", 99)]
)
def test_a_budget_is_a_size(text, bytes_):
    assert size(text) == bytes_


@pytest.mark.parametrize("text", ["", "many", "16 XB", "-3MB"])
def test_a_budget_that_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="a budget is a size such as 16MB or 512KiB, got"):
        size(text)
