"""An index: the vectors of many pictures or texts in one file, and a search among them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

KIND = "regard.index"
VERSION = "1"


class Hits(NamedTuple):
    """The nearest of each question, the nearest first: their rows, and how near they are, from -1 to 1."""

    rows: Int[Tensor, "questions hits"]
    scores: Float[Tensor, "questions hits"]


class Index:
    """Vectors of length 1, each with the name of what it stands for."""

    def __init__(self, vectors: Float[Tensor, "entries space"], names: Sequence[str]):
        if vectors.ndim != 2 or len(vectors) != len(names):
            raise ValueError(
                f"an index needs one name for each vector, (entries, space), got shape {tuple(vectors.shape)} "
                f"and {len(names)} names"
            )
        if fault := pointless(vectors):
            raise ValueError(f"an index needs vectors of finite numbers that are not all 0, and {fault}")
        self.vectors = F.normalize(vectors.detach().float(), dim=-1)
        self.names = list(names)

    def __len__(self) -> int:
        return len(self.names)

    def search(self, questions: Float[Tensor, "questions space"], most: int = 10) -> Hits:
        """The nearest entries of each question by cosine; of those that are equally near the one that stands first."""
        if most < 1:
            raise ValueError(f"a search gives 1 hit or more, got {most}")
        if questions.ndim != 2 or questions.shape[-1] != self.vectors.shape[-1]:
            raise ValueError(
                f"this index holds vectors of {self.vectors.shape[-1]} numbers, got questions of shape "
                f"{tuple(questions.shape)}; ask with the model that made it"
            )
        if fault := pointless(questions):
            raise ValueError(f"a search needs questions of finite numbers that are not all 0, and {fault}")
        scores = F.normalize(questions.detach().float(), dim=-1) @ self.vectors.to(questions.device).mT
        order = scores.sort(dim=-1, descending=True, stable=True)
        return Hits(order.indices[:, :most], order.values[:, :most])

    def found(self, hits: Hits) -> list[list[tuple[str, float]]]:
        """Names and scores in place of rows."""
        pairs = zip(hits.rows.tolist(), hits.scores.tolist(), strict=True)
        return [[(self.names[row], score) for row, score in zip(rows, scores, strict=True)] for rows, scores in pairs]

    def save(self, path: Path) -> None:
        """Write a file of safetensors, whole or not at all."""
        from safetensors.torch import save

        from regard.training import atomic

        if Path(path).is_dir():
            raise ValueError(f"{path} is a directory, and an index is one file; name a file in it")
        told = {"kind": KIND, "version": VERSION, "names": json.dumps(self.names, ensure_ascii=False)}
        atomic.write(Path(path), save({"vectors": self.vectors.cpu().contiguous()}, told))

    @classmethod
    def load(cls, path: Path) -> "Index":
        """Read what `save` wrote."""
        vectors, names = opened(Path(path))
        return cls(vectors, names)


def pointless(vectors: Float[Tensor, "rows space"]) -> str:
    """What keeps vectors from pointing anywhere, of the first that does not; empty where all do."""
    numbers = vectors.detach().float()  # what is kept of them
    for fault, rows in (("has numbers that are not finite", ~numbers.isfinite().all(-1)), ("is 0", ~numbers.any(-1))):
        if bool(rows.any()):
            return f"vector {int(rows.int().argmax())} {fault}"
    return ""


def opened(path: Path) -> tuple[Tensor, list[str]]:
    """The vectors and names in a file; one that is no index is refused."""
    from safetensors import SafetensorError, safe_open

    from regard.training.errors import DamagedError

    if path.is_dir():
        raise DamagedError(f"{path} is a directory, and an index is one file; name the file")
    try:
        with safe_open(path, framework="pt") as file:
            told: dict[str, Any] = file.metadata() or {}
            if told.get("kind") != KIND or told.get("version") != VERSION:
                raise DamagedError(f"{path} is no index of this version of regard; make it anew")
            vectors: Tensor = file.get_tensor("vectors")
            names = json.loads(told["names"])
    except FileNotFoundError as error:
        raise DamagedError(f"{path} is missing") from error
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    if not isinstance(names, list) or vectors.ndim != 2 or len(vectors) != len(names):
        raise DamagedError(f"{path} is damaged: its names and vectors do not belong together")
    if fault := pointless(vectors):
        raise DamagedError(f"{path} is damaged: {fault}, and points nowhere; make it anew")
    return vectors, [str(name) for name in names]
