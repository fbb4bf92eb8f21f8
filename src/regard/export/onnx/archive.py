"""An exported model as one file: a zip of its directory.

    model.zip:  encoder.onnx  step.onnx  config.toml  codec files  manifest.json

`regard.load` opens it as it is, and whoever unpacks it has two plain graphs for any runtime of ONNX. One graph with both
inside would be a single file too, but each run of it would have to be fed the inputs of both, and the vocabularies would lie
beside it. Nothing in it is compressed: weights hardly shrink, and no file can unpack to more than its own size.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from regard.training.directory import STEP
from regard.training.errors import DamagedError


def packed(files: Mapping[str, bytes]) -> bytes:
    """The bytes of an archive; equal files give equal bytes."""
    room = io.BytesIO()
    with ZipFile(room, "w", ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(ZipInfo(name), data)  # without a date, which would be that of the export
    return room.getvalue()


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A directory with what the file holds, for as long as the block lasts. Damage that is found inside names the file."""
    found = contents(path)
    if STEP not in found:
        raise DamagedError(f"{path} holds no graphs of ONNX: unpack it, and give the directory if it is a run")
    with TemporaryDirectory(prefix="regard-") as folder:
        for name, data in found.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        try:
            yield Path(folder)
        except DamagedError as error:
            raise DamagedError(str(error).replace(folder, str(path))) from error


def contents(path: Path) -> dict[str, bytes]:
    """Every file of an archive by its name."""
    try:
        with ZipFile(path) as archive:
            every = [each for each in archive.infolist() if not each.is_dir()]
            for each in every:
                if Path(each.filename).is_absolute() or ".." in Path(each.filename).parts:
                    raise DamagedError(f"{path} holds {each.filename!r}, which lies outside: something else has written it")
                if each.compress_type != ZIP_STORED:
                    raise DamagedError(f"{path} is compressed: pack it by `zip -0`, which only stores, or export it again")
            return {each.filename: archive.read(each) for each in every}
    except (BadZipFile, EOFError) as error:
        raise DamagedError(f"{path} is no whole archive of a model ({error}): copy or export it again") from error
