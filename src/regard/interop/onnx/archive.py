"""An exported model as one file: a zip of its directory.

    model.zip:  encoder.onnx  step.onnx  config.toml  codec files  manifest.json

`regard.load` opens it as it is, and whoever unpacks it has two plain graphs for any runtime of ONNX. One graph with both
inside would be a single file too, but each run of it would have to be fed the inputs of both, and the vocabularies would lie
beside it. Nothing in it is compressed: weights hardly shrink, and no file can unpack to more than its own size.
"""

import io
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from regard import manifest
from regard.boundary import one_line
from regard.errors import DamagedError
from regard.regular_files import MEMORY, open_regular
from regard.training.run_directory import STEP
from regard.training.snapshot import MOST, Snapshot, files_in


def packed(files: Mapping[str, bytes]) -> bytes:
    """The bytes of an archive; equal files give equal bytes."""
    room = io.BytesIO()
    with ZipFile(room, "w", ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(ZipInfo(name), data)  # without a date, which would be that of the export
    return room.getvalue()


def read_archive(path: Path) -> Snapshot:
    """The files of an archive, checked against its manifest; nothing is unpacked to a disk."""
    members = contents(path)
    if STEP not in members:
        raise DamagedError(f"{path} holds no graphs of ONNX: unpack it, and give the directory if it is a run")
    if manifest.NAME not in members:
        raise DamagedError(f"{path} is no trained model: it has no {manifest.NAME}; export it again")
    table = files_in(manifest.parse(members[manifest.NAME], path / manifest.NAME), path)
    snapshot = Snapshot(path, table, {})
    for name in snapshot.names:
        if name not in members:
            raise DamagedError(f"{path / name} is missing: copy {path} again, or export it anew")
        if manifest.digest(members[name]) not in snapshot.digests(name):
            raise DamagedError(f"{manifest.CHANGED.format(path / name)}: copy {path} again, or export it anew")
        snapshot.files[name] = members[name]
    return snapshot


def contents(path: Path) -> dict[str, bytes]:
    """Every file of an archive by its name."""
    try:
        with open_regular(path) as file, ZipFile(file) as archive:
            size = os.fstat(file.fileno()).st_size
            every = [entry for entry in archive.infolist() if not entry.is_dir()]
            check(every, size, path)
            return {entry.filename: archive.read(entry) for entry in every}
    except DamagedError:
        raise
    except (BadZipFile, EOFError) as error:
        raise DamagedError(f"{path} is no whole archive of a model ({error}): copy or export it again") from error
    except (NotImplementedError, RuntimeError, OSError, ValueError, struct.error) as error:  # encrypted, or sizes that lie
        raise DamagedError(f"{path} is no archive that regard wrote ({one_line(error)}): export it again") from error


def check(every: Sequence[ZipInfo], size: int, path: Path) -> None:
    """Refuse what `packed` does not write, before anything is read: no file of it can be larger than the archive is."""
    if len(every) > MOST:
        raise DamagedError(
            f"{path} holds {len(every):,} files, and a model has at most {MOST:,}: something else has written it"
        )
    for entry in every:
        if Path(entry.filename).is_absolute() or ".." in Path(entry.filename).parts:
            raise DamagedError(f"{path} holds {entry.filename!r}, which lies outside: something else has written it")
        if entry.compress_type != ZIP_STORED:
            raise DamagedError(f"{path} is compressed: pack it by `zip -0`, which only stores, or export it again")
    if len({entry.filename for entry in every}) < len(every):
        raise DamagedError(f"{path} holds two files of one name: something else has written it")
    if max(size, sum(max(entry.file_size, entry.compress_size) for entry in every)) > min(size, MEMORY):
        raise DamagedError(f"{path} has {size:,} bytes, less than its files, or more than the memory: export it again")
