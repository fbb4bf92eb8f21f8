"""Clips: folders of pictures, which in the order of their names are the frames."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from regard.config import shortened
from regard.data.image.reading import SHOWN, read_pixels, size
from regard.data.image.resize import Box, fit
from regard.data.records import Record, locate
from regard.errors import DataError

DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Folder:
    """Reads the frames of a folder when it is asked to, each made to fit a box. `most` is how many there may be."""

    path: Path
    where: str
    box: Box
    channels: int = 3
    most: int = 64

    def __call__(self) -> Float[Tensor, "frames channels height width"]:
        paths = self.frames()
        frames = [fit(read_pixels(path, self.where, channels=self.channels), self.box) for path in paths]
        for path, frame in zip(paths, frames, strict=True):
            if frame.shape != frames[0].shape:
                sides = [" x ".join(map(str, image.shape[1:])) for image in (frame, frames[0])]
                raise DataError(
                    f"{self.where}: the frames of a clip need to be of one size, and {path} is {sides[0]} where "
                    f"{paths[0].name} is {sides[1]}; bring them to one size"
                )
        return torch.stack(frames)

    def frames(self) -> list[Path]:
        """The files of the folder by name, 9 before 10; those whose name begins with a dot are none."""
        try:
            paths = [path for path in self.path.iterdir() if not path.name.startswith(".")]
        except OSError as error:
            raise DataError(f"{self.where}: {self.path} cannot be read: {error.strerror}; a clip is a folder") from error
        if not 1 <= len(paths) <= self.most:
            raise DataError(
                f"{self.where}: a clip needs from 1 to {self.most:,} frames (data.max_frames), and {self.path} has "
                f"{len(paths):,}; leave some out, or allow more"
            )
        return sorted(paths, key=lambda path: ordered(path.name))

    def has_frames(self) -> bool:
        """True; a folder without frames, or whose first frame is no picture, is an error that names it."""
        size(self.frames()[0], self.where)
        return True


def ordered(name: str) -> list[tuple[int, str]]:
    """Sort key of a name, by the value of the numbers in it."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in DIGITS.split(name)]


def present(records: Iterable[Record]) -> None:
    """Raise where clips are missing, and list the first of them with their lines."""
    records = list(records)
    if absent := [record for record in records if not os.path.isdir(locate(record))]:
        listed = ", ".join(f"{record.where} {shortened(record.source)}" for record in absent[:SHOWN])
        more = f" and {len(absent) - SHOWN:,} more" * (len(absent) > SHOWN)
        raise DataError(
            f"{len(absent):,} of {len(records):,} clips are missing: {listed}{more}; a clip is a folder of frames, and "
            "paths count from the folder of the table that names them"
        )
