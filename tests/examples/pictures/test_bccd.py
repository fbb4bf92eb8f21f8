import io
import json
import tarfile

import pytest
from PIL import Image

from regard.data.image.reading import read

OBJECT = "<object><name>{}</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"


@pytest.fixture
def bccd(script):
    return script("bccd")


def pack(path, files):
    with tarfile.open(path, "w:xz" if path.suffix == ".xz" else "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def annotation(*objects):
    return (
        f"<annotation><size><width>1</width></size>{''.join(OBJECT.format(*each) for each in objects)}</annotation>".encode()
    )


@pytest.fixture
def source(tmp_path):
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(stream, "JPEG")
    names = {"a": "train", "b": "train", "c": "val", "d": "test"}
    pack(tmp_path / "JPEGImages.tar", {f"JPEGImages/{name}.jpg": stream.getvalue() for name in names})
    things = {
        "a": annotation(("RBC", 1, 2, 10, 12), ("WBC", 20, 5, 44, 33)),
        "b": annotation(("RBC", 7, 7, 7, 7), ("RBC", 3, 4, 9, 10)),
        "c": annotation(),
        "d": annotation(("Platelets", 50, 2, 60, 9), ("Platelets", 2.5, 2, 4, 3)),
    }
    files = {f"Annotations/{name}.xml": content for name, content in things.items()}
    for part in ("train", "val", "test"):
        files[f"ImageSets/Main/{part}.txt"] = "\n".join(name for name in names if names[name] == part).encode()
    pack(tmp_path / "Annotations_ImageSets.tar.xz", files)
    return tmp_path


def test_each_part_has_its_pictures_with_labels_and_boxes(bccd, source, capsys):
    out = source / "out"
    bccd.main(source, out)
    parts = {
        part: [json.loads(line) for line in (out / f"{part}.jsonl").read_text().splitlines()]
        for part in ("train", "dev", "test")
    }
    assert parts["train"] == [
        {"image": "pictures/a.jpg", "labels": ["RBC", "WBC"], "boxes": [[1, 2, 10, 12], [20, 5, 40, 30]]},
        {"image": "pictures/b.jpg", "labels": ["RBC"], "boxes": [[3, 4, 9, 10]]},
    ]
    assert parts["dev"] == [{"image": "pictures/c.jpg", "labels": [], "boxes": []}]
    assert parts["test"] == [{"image": "pictures/d.jpg", "labels": ["Platelets"], "boxes": [[2.5, 2, 4, 3]]}]
    assert read(out / "pictures" / "d.jpg").shape == (3, 30, 40)
    said = capsys.readouterr().out.splitlines()
    assert said[1::2] == ["  RBC 2, WBC 1; dropped 1, cut 1", "  ; dropped 0, cut 0", "  Platelets 1; dropped 1, cut 0"]


def test_a_box_with_less_than_a_pixel_inside_is_dropped(bccd):
    found = [("x", [39.5, 0, 60, 10]), ("x", [-5, -5, 0, 10]), ("y", [39, 29, 80, 80]), ("z", [0, 0, 40, 30])]
    assert bccd.kept(found, height=30, width=40) == (["y", "z"], [[39, 29, 40, 30], [0, 0, 40, 30]], 2, 1)
