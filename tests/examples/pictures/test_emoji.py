import gzip
import json

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def emoji(script):
    return script("emoji")


def described(code, x, y, split, **more):
    names = {"name_en": f"face {code}", "name_zh": f"脸{code}", "keywords_en": ["smile", "joy"], "keywords_zh": ["笑"]}
    return {"unified": code, "sheet_x": x, "sheet_y": y, "split": split} | names | more


def test_cells_of_both_sheets_with_names_in_two_languages(emoji, rows, tmp_path):
    every = [described("1F600", 0, 0, "train"), described("1F601", 1, 0, "dev"), described("1F602", 0, 1, "test")]
    sheets = {}
    for number, vendor in enumerate(("twitter", "google")):
        sheets[vendor] = np.random.default_rng(number).integers(0, 5, (68, 68), np.uint8)
        sheet = Image.fromarray(sheets[vendor], "P")
        sheet.putpalette([colour for index in range(5) for colour in (index, 10 * number, 200)])
        sheet.save(tmp_path / f"{vendor}_32.png", transparency=0)
    with gzip.open(tmp_path / "emoji.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in every)
    out = tmp_path / "out"
    emoji.main(tmp_path, out)
    assert rows(out / "twitter.train.tsv") == [("pictures/twitter/1F600.png", "face 1F600", "face 1F600: smile, joy")]
    assert rows(out / "google.dev.zh.tsv") == [("pictures/google/1F601.png", "脸1F601", "脸1F601: 笑")]
    assert rows(out / "google.test.tsv") == [("pictures/google/1F602.png", "face 1F602", "face 1F602: smile, joy")]
    assert len([*out.glob("*.tsv")]) == 12
    with Image.open(out / "pictures/google/1F602.png") as opened:
        cell, found = sheets["google"][35:67, 1:33], np.asarray(opened)
    assert found.shape == (32, 32, 4)
    np.testing.assert_array_equal(found[..., 0], cell)
    np.testing.assert_array_equal(found[..., 3], np.where(cell == 0, 0, 255))


def test_a_keyword_that_is_the_name_is_not_said_twice(emoji):
    assert emoji.texts(described("x", 0, 0, "dev", name_en="joy"), "en") == ("joy", "joy: smile")
    assert emoji.texts(described("x", 0, 0, "dev", name_zh="笑"), "zh") == ("笑", "笑")
