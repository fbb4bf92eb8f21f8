import pytest
import torch

from regard.data.image.clips import Folder, ordered, present
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.table import DataError


def clip(folder, *sizes):
    folder.mkdir()
    for number, (height, width) in enumerate(sizes, 1):
        (folder / f"{number}.png").write_bytes(png(torch.full((3, height, width), number / 20)))
    return Folder(folder, "t.tsv:1", (16, 16), 3, 12)


def test_frames_come_by_the_numbers_in_their_names(tmp_path):
    found = clip(tmp_path / "a", *[(4, 6)] * 11)()
    assert found.shape == (11, 3, 4, 6)
    assert (found[:, 0, 0, 0] * 20).round().tolist() == list(range(1, 12))
    assert sorted(["b10", "b9", "a"], key=ordered) == ["a", "b9", "b10"]


def test_what_is_hidden_is_no_frame_and_large_ones_are_made_to_fit(tmp_path):
    made = clip(tmp_path / "a", (32, 8), (32, 8))
    (tmp_path / "a" / ".notes").write_text("x")
    assert made().shape == (2, 3, 16, 4)
    assert made.has_frames()


def test_frames_of_two_sizes_are_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"t.tsv:1: the frames of a clip need to be of one size, and .*2.png is 5 x 6 where 1.png is 4"
    ):
        clip(tmp_path / "a", (4, 6), (5, 6))()


def test_a_clip_has_a_frame_and_not_too_many(tmp_path):
    for number, count in enumerate((0, 13)):
        with pytest.raises(
            DataError, match=rf"needs from 1 to 12 frames \(data.max_frames\), and .* has {count}; leave some out"
        ):
            clip(tmp_path / str(number), *[(2, 2)] * count)()


def test_what_is_no_folder_or_no_picture_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match=r"t.tsv:1: .*file cannot be read: Not a directory; a clip is a folder"):
        Folder(tmp_path / "file", "t.tsv:1", (8, 8)).frames()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.txt").write_text("not a picture")
    with pytest.raises(DataError, match=r"t.tsv:1: .*1.txt is no PNG, JPEG or WebP"):
        Folder(tmp_path / "a", "t.tsv:1", (8, 8)).has_frames()


def test_missing_clips_are_listed_with_their_lines(tmp_path):
    (tmp_path / "a").mkdir()
    records = [Record(name, "left", f"{tmp_path}/t.tsv:{line}") for line, name in enumerate(("a", "b", "c"), 1)]
    with pytest.raises(DataError, match=r"2 of 3 clips are missing: .*t.tsv:2 b, .*t.tsv:3 c; a clip is a folder of frames"):
        present(records)
    present(records[:1])
