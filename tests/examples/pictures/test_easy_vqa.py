import gzip
import json

import numpy as np
from PIL import Image


def test_pictures_and_questions_by_part(script, rows, tmp_path):
    chance = np.random.default_rng(0)
    images = {part: chance.integers(0, 256, (count, 4, 5, 3), np.uint8) for part, count in (("train", 20), ("test", 3))}
    for part, every in images.items():
        np.savez_compressed(tmp_path / f"{part}_images.npz", images=every)
        questions = [
            [f"{ask} {n}?", answer, n] for n in range(len(every)) for ask, answer in (("red", "yes"), ("what is", "circle"))
        ]
        with gzip.open(tmp_path / f"{part}_questions.json.gz", "wt", encoding="utf-8") as file:
            json.dump(questions, file)
    out = tmp_path / "out"
    script("easy_vqa").main(tmp_path, out)
    train, dev, test = (rows(out / f"{part}.tsv") for part in ("train", "dev", "test"))
    assert (len(train), len(dev), len(test)) == (36, 4, 6)
    assert train[-1] == ("pictures/train/0017.png", "what is 17?", "circle")
    assert dev[0] == ("pictures/train/0018.png", "red 18?", "yes")
    assert test[1] == ("pictures/test/0000.png", "what is 0?", "circle")
    for image, question, _ in train + dev + test:
        part, number = image.split("/")[1], int(question.split()[-1][:-1])
        with Image.open(out / image) as opened:
            np.testing.assert_array_equal(np.asarray(opened), images[part][number])
