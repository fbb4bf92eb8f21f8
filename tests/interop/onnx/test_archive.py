from zipfile import ZIP_DEFLATED, ZipFile

import pytest

import regard
from regard import manifest
from regard.errors import DamagedError
from regard.interop.onnx.archive import contents, packed, read_archive
from regard.training.run_directory import STEP

FILES = {STEP: b"a graph", "source/words.txt": b"words"}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "model.zip"
    path.write_bytes(packed(FILES))
    return path


def test_what_was_packed_is_read_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    digests = {name: manifest.digest(data) for name, data in FILES.items()}
    path = tmp_path / "model.zip"
    path.write_bytes(packed({**FILES, manifest.NAME: manifest.seal({"files": digests, "pending": {}})}))
    snapshot = read_archive(path)
    assert snapshot.files == FILES
    assert (snapshot.folder / "source" / "words.txt").read_text() == "words"


def test_a_file_that_the_manifest_names_is_needed(tmp_path):
    path = tmp_path / "model.zip"
    path.write_bytes(packed({STEP: b"", manifest.NAME: manifest.seal({"files": {"a": "0"}, "pending": {}})}))
    with pytest.raises(DamagedError, match=r"model\.zip/a is missing: copy .*model\.zip again, or export it anew$"):
        read_archive(path)


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


def test_an_archive_may_hold_as_many_files_as_a_model_has(archive):
    with ZipFile(archive, "w") as made:
        for number in range(1001):
            made.writestr(str(number), b"")
    with pytest.raises(DamagedError, match=r"holds 1,001 files, and a model has at most 1,000: something else"):
        contents(archive)


def test_two_files_of_one_name_are_refused(archive):
    with ZipFile(archive, "a") as made, pytest.warns(UserWarning, match="Duplicate name"):
        made.writestr(STEP, b"another")
    with pytest.raises(DamagedError, match=r"holds two files of one name: something else has written it$"):
        contents(archive)


@pytest.mark.parametrize("size", [2**20, 2**31, 2**32 - 2])
def test_sizes_beyond_the_archive_are_refused_before_anything_is_read(archive, size):
    data = bytearray(archive.read_bytes())
    place = data.rindex(b"PK\x01\x02") + 20
    data[place : place + 8] = size.to_bytes(4, "little") * 2
    archive.write_bytes(data)
    with pytest.raises(DamagedError, match=r"bytes, less than its files, or more than the memory: export it again$"):
        contents(archive)


def test_an_encrypted_archive_is_refused(archive):
    data = bytearray(archive.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    archive.write_bytes(data)
    with pytest.raises(DamagedError, match=r"is no archive that regard wrote \(.*\): export it again$"):
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
