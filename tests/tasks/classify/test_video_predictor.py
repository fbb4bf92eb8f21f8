import torch
from torch.testing import assert_close

from regard import tasks
from regard.data.image.synthetic.motion import Clip
from regard.data.image.synthetic.scene import Thing
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.records import Record
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.tasks.classify.experiment import build
from regard.tasks.classify.predictor import ClassifierOutput
from regard.tasks.classify.synthetic import SyntheticClip
from regard.tasks.classify.task import Config
from regard.tasks.classify.video_predictor import Watcher, filled, sheet
from regard.viewer.io import load, save

CODEC = LabelCodec(("left", "right"), clips=True, height=16, width=16)
CONFIG = Config(data=ClassifyData(height=16, width=16, clips=True), model=ClassifyModel(hidden_size=16, depth=1))


def watcher():
    torch.manual_seed(0)
    return Watcher(tasks.bind("classify"), CONFIG, CODEC, build(CONFIG, CODEC))


def folder(path, frames, width=16):
    path.mkdir()
    for number in range(frames):
        (path / f"{number}.png").write_bytes(png(torch.rand(3, 16, width)))
    return str(path)


def test_an_answer_says_which_frames_it_looked_at(tmp_path):
    clips = [folder(tmp_path / "a", 5), folder(tmp_path / "b", 3)]  # the shorter has empty frames in a batch of both
    for path, found, frames in zip(clips, watcher().predict(clips, align=True), (5, 3), strict=True):
        assert found.source == [str(number + 1) for number in range(frames)]
        assert found.weights.shape == (1, frames)
        assert_close(found.weights.sum(1), torch.ones(1))
        assert found.grid is None
        [alone] = watcher().predict([path], align=True)
        assert_close(alone.weights, found.weights)


def test_a_trace_has_frames_on_one_sheet(tmp_path):
    model, path = watcher(), folder(tmp_path / "a", 3, width=12)
    save(model.trace([path]), tmp_path / "t.attn.safetensors")
    [example] = load(tmp_path / "t.attn.safetensors").examples
    assert example.axes["picture"].grid == (4, 4)  # two frames of 2 x 2 places in a row, one and an empty one below
    space, time, both = example.attentions
    parts = torch.tensor(space.weights).view(4, 3, 2, 2, 2, 2).sum((3, 5)).flatten(2)  # heads, frames, frames of the sheet
    assert_close(parts, torch.eye(4)[:3].expand(4, 3, 4))
    shares = torch.tensor(both.weights).view(2, 2, 2, 2).sum((1, 3)).flatten()
    assert_close(shares[:3], torch.tensor(time.weights).mean(0)[0])
    [best] = model.predict([path])
    assert example.axes["answer"].labels == [best.text]


def test_frames_are_filled_up_with_white_to_whole_squares():
    found = filled(torch.zeros(2, 3, 6, 5, dtype=torch.uint8), 4)
    assert found.shape == (2, 3, 8, 8)
    assert found[0, 0, 0].tolist() == [0] * 5 + [255] * 3
    assert found[:, :, 6:].min() == 255


def test_a_sheet_has_frames_row_by_row():
    found = sheet(torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1).expand(3, 1, 2), 9)
    assert found.tolist() == [[1, 1, 2, 2], [3, 3, 9, 9]]


def test_looks_counts_clips_whose_most_looked_at_frame_shows_the_motion():
    clip = Clip(Thing("star", "red", 128, 128, 30), "left", 2, 8)
    model, mask = watcher(), torch.ones(8, 4, dtype=torch.bool)
    for frame, hit in ((2, 1), (5, 1), (1, 0), (6, 0)):
        weights = torch.zeros(1, 1, 1, 8)
        weights[..., frame] = 1.0
        found = ClassifierOutput(torch.zeros(1, 2), {"time.attention": weights}, mask)
        example = ImageExample(SyntheticClip(clip, 16), record=Record("1", "left", "drawn:1"), labels=[0])
        assert model.hits(example, 0, found) == (hit, 1)
    assert model.hits(ImageExample("a"), 0, found) == (0, 0)
