import json
import os

import pytest

from regard.errors import RefusedError
from regard.interop.huggingface.vision_encoder_decoder.processor import FILE, NEWER, read


def said(folder, **fields):
    (folder / FILE).write_text(json.dumps(fields))
    return folder


def test_nothing_said_is_a_half(tmp_path):
    assert read(tmp_path, (8, 8), 3) == ((0.5,) * 3, (0.5,) * 3)


@pytest.mark.parametrize("size", [8, [8, 8], {"height": 8, "width": 8}])
def test_mean_and_deviation_are_read_however_the_size_is_said(size, tmp_path):
    folder = said(tmp_path, size=size, image_mean=[0.1, 0.2, 0.3], image_std=[1, 0.5, 0.25], resample=2, do_resize=True)
    assert read(folder, (8, 8), 3) == ((0.1, 0.2, 0.3), (1.0, 0.5, 0.25))


def test_a_processor_of_pictures_and_texts_says_it_too(tmp_path):
    (tmp_path / NEWER).write_text(json.dumps({"image_processor": {"do_normalize": False}}))
    assert read(tmp_path, (8, 8), 1) == ((0.0,), (1.0,))


@pytest.mark.parametrize("name", [FILE, NEWER])
def test_a_processor_that_is_a_pipe_is_refused_and_not_left_out(name, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(RefusedError, match=rf"{name} is no regular file but a pipe"):
        read(tmp_path, (8, 8), 3)


def test_a_crop_that_takes_nothing_off_is_none(tmp_path):
    assert read(said(tmp_path, size=8, do_center_crop=True, crop_size=8), (8, 8), 1).mean == (0.5,)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"resample": 3}, "has resample=3, and models with 2 alone can be taken"),
        ({"size": 16}, r"has size=\(16, 16\), and models with \(8, 8\) alone"),
        ({"size": {"shortest_edge": 8}}, r"has size=\{'shortest_edge': 8\}, and models"),
        ({"size": 8, "do_center_crop": True, "crop_size": 4}, r"has crop_size=\(4, 4\), and models with \(8, 8\) alone"),
        ({"do_resize": False}, "has do_resize=False, and models with True alone"),
        ({"do_rescale": False}, "has do_rescale=False, and models with True alone"),
        ({"rescale_factor": 0.5}, "has rescale_factor=0.5, and models with '1/255' alone"),
        ({"do_pad": True}, "has do_pad=True, and models with False alone"),
        ({"do_flip": True}, "has a field 'do_flip' that is not known: it could change what the model sees"),
        ({"image_mean": [0.5]}, r"needs image_mean to have a number from 0.0 up for each of 3 channels, got \[0.5\]"),
        ({"image_std": [0.5, 0, 1]}, r"needs image_std to have a number from 1e-06 up for each of 3 channels"),
    ],
)
def test_what_is_read_in_another_way_is_refused(fields, told, tmp_path):
    with pytest.raises(RefusedError, match=told):
        read(said(tmp_path, **fields), (8, 8), 3)
