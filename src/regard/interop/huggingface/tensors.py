"""The weights in a folder: a safetensors file, looked at before it is read."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import RefusedError
from regard.interop.huggingface import names, t5_import
from regard.interop.huggingface.settings import Settings

FILE = "model.safetensors"
UNUSED = t5_import.UNUSED | {f"model.{half}.embed_positions.weight" for half in ("encoder", "decoder")}
"""Tensors of some files beside the parameters: unused or computed ones."""


class Tensors(Mapping[str, Tensor]):
    """Tensors by name, each read when it is asked for; to be used in a `with`."""

    def __init__(self, folder: Path):
        self.folder, self.resources = folder, ExitStack()
        if (folder / FILE).is_file():
            return
        if (folder / f"{FILE}.index.json").is_file():
            raise RefusedError(f"{folder} has its weights in several files: save it with max_shard_size='100GB', in one")
        if any(folder.glob("*.bin")):
            raise RefusedError(
                f"{folder} has its weights in a .bin file, which is a pickle and may run code when it is opened: load it in "
                "transformers where you trust it, and save_pretrained writes model.safetensors"
            )
        raise RefusedError(f"{folder} has no {FILE}: give the directory that save_pretrained of transformers wrote")

    def __enter__(self) -> "Tensors":
        from safetensors import SafetensorError, safe_open

        try:
            self.file: Any = self.resources.enter_context(safe_open(self.folder / FILE, "pt"))
        except (SafetensorError, OSError) as error:
            raise RefusedError(f"{self.folder / FILE} is not a whole safetensors file: {error}") from error
        return self

    def __exit__(self, *error: Any) -> None:
        self.resources.close()

    def __getitem__(self, name: str) -> Tensor:
        tensor: Tensor = self.file.get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self.file.keys())

    def __len__(self) -> int:
        return len(self.file.keys())

    def fit(self, settings: Settings) -> None:
        """Raise unless the file has what the settings speak of and nothing else, by its header alone."""
        expected, present = shapes(settings), set(self)
        where = f"{self.folder / FILE} does not fit config.json: "
        relative = settings.family.positions == "bias"
        shared, copies = (t5_import.SHARED, t5_import.COPIES) if relative else (names.SHARED, names.COPIES)
        tables = dict.fromkeys(sorted(present & {*copies, *({t5_import.OUTPUT} if relative else ())}), expected[shared])
        self.match(expected | tables, UNUSED)
        for name in sorted(present & copies):
            if not torch.equal(self[name], self[shared]):
                raise RefusedError(f"{where}{name} is not the same as {shared}, and models with one table can be taken")

    def match(self, expected: Mapping[str, tuple[int, ...]], unused: Collection[str]) -> None:
        """Raise unless the file has tensors of these names and shapes, and else at most those that nothing reads."""
        where, present = f"{self.folder / FILE} does not fit config.json: ", set(self)
        for name, shape in expected.items():
            if name not in present:
                raise RefusedError(f"{where}it has no {name}, which needs the shape {shape}")
            stored = tuple(self.file.get_slice(name).get_shape())
            if stored != shape:
                raise RefusedError(f"{where}{name} needs the shape {shape}, got {stored}")
        if strange := sorted(present - expected.keys() - {*unused}):
            raise RefusedError(f"{where}it has {strange[0]}, which such a model has no place for")


def shapes(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors in the file of a model."""
    if settings.family.positions == "bias":
        return t5_import.shapes(settings)
    size, inner, vocabulary = settings.d_model, settings.encoder_ffn_dim, settings.vocab_size
    expected: dict[str, tuple[int, ...]] = {names.SHARED: (vocabulary, size)}
    if settings.family.bias:
        expected[names.BIAS] = (1, vocabulary)
    if settings.family.positions == "table":
        rows = settings.max_position_embeddings + settings.family.first
        expected |= {f"model.{half}.embed_positions.weight": (rows, size) for half in ("encoder", "decoder")}
    wide = {".fc1.weight": (inner, size), ".fc2.weight": (size, inner), ".fc1.bias": (inner,)}
    for pair in names.layers(settings.encoder_layers, settings.decoder_layers, settings.family):
        ending = next((end for end in wide if pair.theirs.endswith(end)), None)
        square = pair.theirs.endswith("_proj.weight")
        expected[pair.theirs] = wide[ending] if ending else (size, size) if square else (size,)
    return expected
