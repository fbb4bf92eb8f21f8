"""Codec of points: instances -> points in the unit square, and routes as text."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar

import torch

from regard.data.axis import Text
from regard.data.codec import SETTINGS, Corpus, OverLong, Report
from regard.data.modality import WritableFile
from regard.tasks.route.batch import Points, RouteExample, RouteLoader, scale_points, stack_points
from regard.tasks.route.config import RouteData
from regard.tasks.route.records import Instance, read_points

FORMAT = 1
KIND = "points"


@dataclass(frozen=True)
class PointCodec:
    """Reader of points; an instance is moved and scaled into the unit square, and nothing else is fitted."""

    kind: ClassVar[str] = KIND
    reads_files: ClassVar[bool] = True
    feedback: ClassVar[None] = None
    settings: ClassVar[tuple[str, ...]] = ()

    max_points: int = 500

    def adapt(self, data: RouteData) -> "PointCodec":
        """The codec with the limit of these settings."""
        return replace(self, max_points=data.max_points)

    def read(self, text: str, number: int = 1) -> Instance:
        """Points of a CSV file by its path."""
        return read_points(RouteData(max_points=self.max_points), text)

    def is_known(self, record: Instance) -> bool:
        """True: any points have a route."""
        return True

    def fits(self, record: Instance) -> bool:
        """True: an instance with too many points is an error."""
        return True

    def select_fitting(self, records: Sequence[Instance]) -> list[int]:
        """Indices of all records."""
        return list(range(len(records)))

    def encode(self, record: Instance) -> RouteExample:
        """Example of one record."""
        return RouteExample(scale_points(torch.tensor(record.points, dtype=torch.float64)), record)

    def encode_all(self, records: Iterable[Instance], over_long: OverLong | None = None) -> Corpus:
        """Examples of records."""
        examples = [self.encode(record) for record in records]
        return Corpus(examples, Report(len(examples), len(examples), 0, 0, 0, 0.0))

    def encode_target(self, record: Instance) -> None:
        """Target of a record; None: routes are learned from their length."""
        return

    def length(self, example: RouteExample) -> int:
        """Number of points."""
        return len(example.points)

    def budget(self, examples: Sequence[RouteExample], count: int) -> int:
        """Size of a batch of `count` instances: that number."""
        return count

    def loader(self, examples: Sequence[RouteExample], budget: int) -> RouteLoader:
        """Batches of an evaluation, each of at most so many instances."""
        return RouteLoader(examples, budget)

    def collate(self, examples: Sequence[RouteExample]) -> Points:
        """Points of examples, which have equally many."""
        return stack_points(torch.stack([example.points for example in examples]))

    def collate_target(self, examples: Sequence[RouteExample]) -> None:
        """Targets of examples; None: there are none."""
        return

    def decode(self, output: Sequence[int]) -> str:
        """Route as the numbers of its points, counted from 0."""
        return " ".join(map(str, output))

    def write(self, prediction: str, file: WritableFile) -> None:
        """Write a route as one line."""
        file.write(f"{prediction}\n")

    def pieces(self, example: RouteExample) -> list[str]:
        """Numbers of the points."""
        return [str(number) for number in range(len(example.points))]

    def axis(self, example: RouteExample) -> Text:
        """Axis of an attention's keys: the points."""
        return Text.of(self.pieces(example))

    def grid(self, example: RouteExample) -> None:
        """Rows and columns of that axis; None: points are in no grid."""
        return

    def target_pieces(self, output: Sequence[int]) -> list[str]:
        """Numbers of the points of a route, in its order."""
        return [str(number) for number in output]

    def target_axis(self, output: Sequence[int]) -> Text:
        """Axis of an attention's queries: the points in the order of the route."""
        return Text.of(self.target_pieces(output))

    def example_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> Points:
        """Random points, to trace a model for export: as many in each instance as in the largest."""
        return stack_points(torch.rand(len(lengths), max(lengths), 2, generator=generator))

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """Names of the dimensions that differ from batch to batch, for export."""
        return {"data": {0: "batch", 1: "points"}, "keep": {0: "batch", 1: "points"}}

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory as JSON; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / SETTINGS
        settings = {"format": FORMAT, "reads": KIND, "max_points": self.max_points}
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return [path]

    @classmethod
    def load(cls, directory: Traversable) -> "PointCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(values, dict) or values.get("format") != FORMAT or values.get("reads") != KIND:
                raise ValueError("it is of another format")
            if type(values.get("max_points")) is not int or values["max_points"] < 1:
                raise ValueError("max_points is missing or of the wrong kind")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of {KIND}, format {FORMAT}: {error}") from error
        return cls(values["max_points"])
