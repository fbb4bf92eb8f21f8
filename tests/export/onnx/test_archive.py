from zipfile import ZIP_DEFLATED, ZipFile

import pytest

import regard
from regard.export.onnx.archive import contents, packed, unpacked
from regard.training import manifest
from regard.training.directory import STEP
from regard.training.errors import DamagedError

FILES = {STEP: b"a graph", "source/words.txt": b"words"}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "model.zip"
    path.write_bytes(packed(FILES))
    return path


def test_what_was_packed_is_unpacked_and_goes_afterwards(archive):
    with unpacked(archive) as folder:
        assert {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()} == FILES
    assert not folder.exists()


def test_equal_files_give_equal_bytes():
    assert packed(FILES) == packed(dict(FILES))
    assert packed(FILES) != packed({**FILES, STEP: b"another"})


def test_any_zip_takes_it_apart_and_nothing_is_compressed(archive):
    with ZipFile(archive) as opened:
        assert opened.testzip() is None
        assert opened.namelist() == list(FILES)
        assert all(each.compress_size == each.file_size for each in opened.infolist())


def test_a_file_that_is_no_archive_is_told(archive):
    archive.write_bytes(b"nothing of the kind")
    with pytest.raises(DamagedError, match=r"model\.zip is no whole archive of a model \(.*\): copy or export it again"):
        contents(archive)


def test_a_changed_byte_is_known(archive):
    archive.write_bytes(archive.read_bytes().replace(b"a graph", b"a grape"))
    with pytest.raises(DamagedError, match=r"is no whole archive of a model \(Bad CRC-32 for file 'step\.onnx'\)"):
        contents(archive)


def test_half_an_archive_is_known(archive):
    archive.write_bytes(archive.read_bytes()[:60])
    with pytest.raises(DamagedError, match="is no whole archive of a model"):
        contents(archive)


def test_nothing_is_unpacked_to_more_than_it_is(archive):
    with ZipFile(archive, "w", ZIP_DEFLATED) as made:
        made.writestr(STEP, bytes(1_000_000))
    with pytest.raises(
        DamagedError, match=r"model\.zip is compressed: pack it by `zip -0`, which only stores, or export it"
    ):
        contents(archive)


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_nothing_is_put_outside(archive, name):
    with ZipFile(archive, "w") as made:
        made.writestr(name, b"")
    with pytest.raises(DamagedError, match=rf"model\.zip holds '{name}', which lies outside: something else has written it"):
        contents(archive)


def test_an_archive_of_something_else_is_refused(archive):
    archive.write_bytes(packed({"model.safetensors": b""}))
    with pytest.raises(DamagedError, match=r"model\.zip holds no graphs of ONNX: unpack it, and give the directory"):
        regard.load(archive)


def test_damage_inside_names_the_archive(archive):
    files = {STEP: b"a graph", manifest.NAME: manifest.seal({"files": {STEP: manifest.digest(b"other")}, "pending": {}})}
    archive.write_bytes(packed(files))
    with pytest.raises(DamagedError, match=rf"^{archive}/step\.onnx is not what was written"):
        regard.load(archive)
    archive.write_bytes(packed({STEP: b"a graph"}))
    with pytest.raises(DamagedError, match=rf"^{archive} is no trained model: it has no manifest\.json"):
        regard.load(archive)
