"""Emoji as two vendors draw them, with their names and keywords in English and Chinese.

    REGARD_DATA=folder/with/emoji python examples/pictures/emoji.py OUT

writes OUT/pictures/{twitter,google}/CODE.png, 32 x 32 and transparent, and for each vendor and part
OUT/{twitter,google}.{train,dev,test}.tsv in English and .zh.tsv in Chinese, with three columns:

    image TAB name TAB name: keyword, keyword, ...

Each vendor has 1,259, 141 and 185. The parts share no concept: for what was never seen, train on both vendors
(twitter.train.tsv+google.train.tsv) and search among one vendor's test pictures at a time. For a style that was never seen,
train on twitter.train.tsv+twitter.dev.tsv+twitter.test.tsv and search among Google's.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from folder import given, picture, table
from PIL import Image

VENDORS = ("twitter", "google")
PARTS = ("train", "dev", "test")
LANGUAGES = {"en": "", "zh": ".zh"}
SIDE, STEP = 32, 34
"""Pixels of a cell, and from one cell to the next: each has a rim of one pixel."""


def main(source: Path, out: Path) -> None:
    """Cut both sheets into pictures and write the tables."""
    with gzip.open(source / "emoji.jsonl.gz", "rt", encoding="utf-8") as file:
        every = [json.loads(line) for line in file]
    for vendor in VENDORS:
        with Image.open(source / f"{vendor}_32.png") as sheet:
            pictures = cut(sheet.convert("RGBA"), every, out, vendor)
        for part in PARTS:
            chosen = [each for each in every if each["split"] == part]
            for language, ending in LANGUAGES.items():
                rows = [(pictures[each["unified"]], *texts(each, language)) for each in chosen]
                table(out / f"{vendor}.{part}{ending}.tsv", rows)


def cut(sheet: Image.Image, every: list[dict[str, Any]], out: Path, vendor: str) -> dict[str, str]:
    """Write a picture for each emoji; their paths by code."""
    written = {}
    for each in every:
        left, top = (STEP * each[side] + 1 for side in ("sheet_x", "sheet_y"))
        cell = sheet.crop((left, top, left + SIDE, top + SIDE))
        written[each["unified"]] = picture(out, f"{vendor}/{each['unified']}", cell)
    return written


def texts(each: dict[str, Any], language: str) -> tuple[str, str]:
    """The name alone, and with those keywords that say more."""
    name = each[f"name_{language}"]
    more = [word for word in each[f"keywords_{language}"] if word != name]
    return name, f"{name}: {', '.join(more)}" if more else name


if __name__ == "__main__":
    main(*given("emoji"))
