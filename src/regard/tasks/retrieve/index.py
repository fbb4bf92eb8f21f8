"""Vector index: embeddings of pictures or texts in one file, with nearest-neighbour search."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from regard.data.image.reading import present, size
from regard.data.records import Record, locate
from regard.errors import DataError

KIND = "regard.index"
VERSION = "2"
Kind = Literal["pictures", "texts"]
KINDS: tuple[Kind, Kind] = ("pictures", "texts")
LISTED = 10
"""Maximum number of unreadable entries that an error lists."""


class Hits(NamedTuple):
    """Nearest neighbours of each query in order: their rows, and their cosine similarities."""

    rows: Int[Tensor, "questions hits"]
    scores: Float[Tensor, "questions hits"]


class Index:
    """Unit vectors, each with the name of its entry: the path of a picture, or a text.

    `model` is the fingerprint of the model that made it. Paths count from `folder`; in a file from that of the file, so that
    an index and its pictures may be moved together.
    """

    def __init__(
        self,
        vectors: Float[Tensor, "entries space"],
        names: Sequence[str],
        of: Kind = "pictures",
        model: str = "",
        folder: Path = Path(),
    ):
        if vectors.ndim != 2 or len(vectors) != len(names):
            raise ValueError(
                f"an index needs one name for each vector, (entries, space), got shape {tuple(vectors.shape)} "
                f"and {len(names)} names"
            )
        if fault := describe_degenerate(vectors):
            raise DataError(f"an index needs vectors of finite numbers that are not all 0, and {fault}")
        self.vectors = F.normalize(vectors.detach().float(), dim=-1)
        self.names, self.of, self.model, self.folder = list(names), of, model, folder

    def __len__(self) -> int:
        return len(self.names)

    def search(self, questions: Float[Tensor, "questions space"], most: int = 10) -> Hits:
        """Nearest entries of each query by cosine similarity; ties in the order of the index."""
        if most < 1:
            raise ValueError(f"a search gives 1 hit or more, got {most}")
        if questions.ndim != 2 or questions.shape[-1] != self.vectors.shape[-1]:
            raise ValueError(
                f"this index holds vectors of {self.vectors.shape[-1]} numbers, got questions of shape "
                f"{tuple(questions.shape)}; query with the model that made it"
            )
        if fault := describe_degenerate(questions):
            raise ValueError(f"a search needs questions of finite numbers that are not all 0, and {fault}")
        scores = F.normalize(questions.detach().float(), dim=-1) @ self.vectors.to(questions.device).mT
        order = scores.sort(dim=-1, descending=True, stable=True)
        return Hits(order.indices[:, :most], order.values[:, :most])

    def name_hits(self, hits: Hits) -> list[list[tuple[str, float]]]:
        """Names and scores of hits."""
        pairs = zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)
        return [[(self.names[row], score) for row, score in zip(rows, scores, strict=True)] for rows, scores in pairs]

    def place(self, row: int) -> str:
        """Name of an entry for display: a text, or the path of a picture from the working directory."""
        return self.names[row] if self.of == "texts" else str(self.folder / self.names[row])

    def save(self, path: Path) -> None:
        """Write a file of safetensors, whole or not at all."""
        from safetensors.torch import save

        from regard import io

        if Path(path).is_dir():
            raise ValueError(f"{path} is a directory, and an index is one file; name a file in it")
        names = self.names if self.of == "texts" else [self._relative(Path(path).parent, name) for name in self.names]
        metadata = {"kind": KIND, "version": VERSION, "of": self.of, "model": self.model}
        text = json.dumps(names, ensure_ascii=False)
        metadata |= {
            "names": text.encode("utf-8", "backslashreplace").decode()
        }  # \udcff is JSON for a byte that is no UTF-8
        io.write(Path(path), save({"vectors": self.vectors.cpu().contiguous()}, metadata))

    def _relative(self, folder: Path, name: str) -> str:
        return name if os.path.isabs(name) else os.path.relpath(self.folder / name, folder)

    @classmethod
    def load(cls, path: Path) -> "Index":
        """Read what `save` wrote."""
        from regard.boundary import boundary

        with boundary(path):
            return read_index(Path(path))


def fingerprint(model: nn.Module) -> str:
    """SHA-256 of the tensors of a model and their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def describe_degenerate(vectors: Float[Tensor, "rows space"]) -> str:
    """Reason why the first degenerate vector has no direction; empty where there is none."""
    numbers = vectors.detach().float()  # what is kept of them
    for fault, rows in (("has numbers that are not finite", ~numbers.isfinite().all(-1)), ("is 0", ~numbers.any(-1))):
        if bool(rows.any()):
            return f"vector {int(rows.int().argmax())} {fault}"
    return ""


def read_index(path: Path) -> Index:
    """Read and validate the index in a file."""
    from safetensors import SafetensorError, safe_open

    from regard.data.lines import unreadable
    from regard.errors import DamagedError
    from regard.regular_files import open_regular

    if os.path.isdir(path):
        raise DamagedError(f"{path} is a directory, and an index is one file; name the file")
    if os.path.exists(path):  # False where a name is too long
        open_regular(path).close()  # the library maps the file, and would wait for a pipe
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, Any] = file.metadata() or {}
            if metadata.get("kind") != KIND or metadata.get("version") != VERSION:
                raise DamagedError(f"{path} is no index of this version of regard; make it anew")
            vectors: Tensor = file.get_tensor("vectors")
            names, of, model = json.loads(metadata["names"]), metadata["of"], str(metadata["model"])
    except FileNotFoundError as error:
        raise DamagedError(
            f"{unreadable(str(path), error)}; an index is made by regard index RUN --file LIST --out NAME.safetensors"
        ) from error
    except OSError as error:
        raise DamagedError(unreadable(str(path), error)) from error
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    if of not in KINDS or not isinstance(names, list) or vectors.ndim != 2 or len(vectors) != len(names):
        raise DamagedError(f"{path} is damaged: its names and vectors do not belong together")
    if fault := describe_degenerate(vectors):
        raise DamagedError(f"{path} is damaged: {fault}, and points nowhere; make it anew")
    return Index(vectors, [str(name) for name in names], of, model, path.parent)


def refuse_unreadable(codec: Any, records: Sequence[Record], kind: Kind) -> None:
    """Raise where entries cannot be read, and list the first of them with their lines."""
    if kind == "pictures":
        present(records)
    faults = [fault for record in records if (fault := _find_fault(codec, record, kind)) is not None]
    if faults:
        more = f"; and {len(faults) - LISTED:,} more" * (len(faults) > LISTED)
        raise DataError(f"{len(faults):,} of {len(records):,} {kind} cannot be read: {'; '.join(faults[:LISTED])}{more}")


def _find_fault(codec: Any, record: Record, kind: Kind) -> str | None:
    if kind == "texts":
        unread = f"{record.where} has nothing that the model knows, or is longer than what it reads"
        return None if codec.familiar(record.source) else unread
    try:
        size(locate(record), record.where)
    except DataError as error:
        return str(error)
    return None
