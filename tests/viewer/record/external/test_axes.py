"""Axes of a run of a model of another library, from its inputs."""

from types import SimpleNamespace

import numpy as np
import torch

from regard.data.axis import Audio, Image, Index
from regard.viewer.record.external.axes import Reader
from regard.viewer.record.external.runs import ModelRun


def test_patches_of_a_picture_are_a_grid_behind_the_places_before_them():
    inputs = {"pixel_values": torch.rand(2, 3, 8, 12)}
    reader = Reader(ModelRun(passes=[inputs]), SimpleNamespace(patch_size=4))
    axis, places = reader.axis("patches", 7, (1, 2), None)
    assert isinstance(axis, Image)
    assert (axis.grid, axis.size, axis.prefix) == ((2, 3), (8, 12), ("CLS",))
    assert places == list(range(7))
    assert axis.pixels.shape == (8, 12, 3)


def test_the_mean_and_deviation_of_a_processor_are_undone():
    picture = torch.tensor([0.2, 0.4, 0.6]).view(1, 3, 1, 1).expand(1, 3, 4, 4)
    processor = SimpleNamespace(image_mean=[0.5, 0.5, 0.5], image_std=[0.25, 0.25, 0.25])
    reader = Reader(
        ModelRun(passes=[{"pixel_values": (picture - 0.5) / 0.25}]), SimpleNamespace(patch_size=2), None, processor
    )
    axis, _ = reader.axis("patches", 4, (0, 1), None)
    assert np.unique(axis.pixels.reshape(-1, 3), axis=0).tolist() == [[51, 102, 153]]


def test_frames_of_sound_have_seconds_of_the_feature_extractor():
    inputs = {"input_features": torch.rand(1, 80, 100)}
    processor = SimpleNamespace(sampling_rate=8000, hop_length=80)
    axis, _ = Reader(ModelRun(passes=[inputs]), None, None, processor).axis("frames", 50, (0, 1), None)
    assert isinstance(axis, Audio)
    assert len(axis) == 50
    assert axis.seconds_per_step == 100 * 80 / 8000 / 50


def test_what_no_input_explains_is_numbered():
    axis, places = Reader(ModelRun(passes=[{"input_ids": torch.ones(1, 3)}])).axis("patches", 9, (0, 1), None)
    assert isinstance(axis, Index)
    assert len(axis) == 9
    assert places == list(range(9))
