"""easy-VQA: drawn shapes, questions about them and answers.

    REGARD_DATA=folder/with/easy-vqa python examples/pictures/easy_vqa.py OUT

writes OUT/pictures/{train,test}/NUMBER.png, 64 x 64 in colour, and OUT/train.tsv, dev.tsv and test.tsv:

    image TAB question TAB answer

34,687, 3,888 and 9,673 lines. dev is the last tenth of the 4,000 training pictures with all of their questions; test is the
official one.
"""

import gzip
import json
from pathlib import Path

import numpy as np
from folder import given, picture, table
from PIL import Image

HELD = 10
"""One in so many training pictures is for dev."""


def main(source: Path, out: Path) -> None:
    """Write the pictures and the three tables."""
    train, questions = pictures(source, out, "train"), asked(source, "train")
    first = len(train) - len(train) // HELD
    table(out / "train.tsv", ((train[number], *rest) for *rest, number in questions if number < first))
    table(out / "dev.tsv", ((train[number], *rest) for *rest, number in questions if number >= first))
    test = pictures(source, out, "test")
    table(out / "test.tsv", ((test[number], *rest) for *rest, number in asked(source, "test")))


def pictures(source: Path, out: Path, part: str) -> list[str]:
    """Write those of one part; their paths in order."""
    with np.load(source / f"{part}_images.npz") as arrays:
        images = arrays["images"]
    return [picture(out, f"{part}/{number:04}", Image.fromarray(image)) for number, image in enumerate(images)]


def asked(source: Path, part: str) -> list[tuple[str, str, int]]:
    """Question, answer and number of the picture."""
    with gzip.open(source / f"{part}_questions.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


if __name__ == "__main__":
    main(*given("easy-vqa"))
