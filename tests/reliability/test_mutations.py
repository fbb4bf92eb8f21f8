"""Mutated bytes of manifests, of safetensors and of checkpoints: read as they are, or damaged, and never another error (F3)."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from regard import manifest
from regard.errors import DamagedError, RefusedError
from regard.training import checkpoint
from regard.training.tensor_file import parse_tensors

pytestmark = pytest.mark.unhooked  # fifty thousand calls, of which the hook would check each

SOAK = 1_000_000
COUNT = SOAK // 20
"""Mutations in all, and in `make test`."""
WHERE = Path("run") / "file"
TENSORS = {"weight": torch.arange(6.0).view(2, 3), "bias": torch.zeros(3, dtype=torch.bfloat16), "step": torch.tensor(7)}
TABLE = {"step": 3, "counters": {"best": None, "figures": {"loss": 1.5}}, "files": {checkpoint.STATE: "0" * 64}}
WORDS = (
    b"null",
    b"NaN",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b'""',
    b"\xff",
    b"\\ud800",
    b"9" * 30,
    b"[[[[",
    b"shape",
    b"F64",
    b"\0",
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes of it flipped, cut, doubled, moved, or with a word of the format among them."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        place, what = chance.randrange(len(found) or 1), chance.randrange(6)
        if what == 0 and found:
            found[place] ^= 1 << chance.randrange(8)
        elif what == 1 and found:
            found[place] = chance.randrange(256)
        elif what == 2:
            del found[place : place + chance.randint(1, 20)]
        elif what == 3:
            found[place:place] = chance.choice(WORDS)
        elif what == 4:
            word = chance.choice(WORDS)
            found[place : place + len(word)] = word
        else:
            other = chance.randrange(len(found) or 1)
            found[place:place] = found[other : other + chance.randint(1, 30)]
    return bytes(found)


def read_manifest(data: bytes, _: Path) -> None:
    manifest.parse(data, WHERE)


def read_sealed_manifest(data: bytes, _: Path) -> None:
    """Read a manifest whose check a forger has computed again, where it is JSON still."""
    try:
        table = json.loads(data)
        table["check"] = manifest._check({name: value for name, value in table.items() if name != "check"})
        data = json.dumps(table).encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    manifest.parse(data, WHERE)


def read_weights(data: bytes, _: Path) -> None:
    parse_tensors(bytearray(data), WHERE)


def read_header(data: bytes, _: Path) -> None:
    """Read weights whose length of the header is right, so that the header is parsed whatever stands in it."""
    end = data.rfind(b"}}") + 2
    parse_tensors(bytearray(max(end - 8, 0).to_bytes(8, "little") + data[8:]), WHERE)


def load_checkpoint(data: bytes, folder: Path) -> None:
    """Load a checkpoint whose manifest agrees with the mutated tensors."""
    table = {**TABLE, "files": {checkpoint.STATE: manifest.digest(data)}}
    (folder / checkpoint.STATE).write_bytes(data)
    (folder / manifest.NAME).write_bytes(manifest.seal(table))
    checkpoint.load(folder)


def load_damaged_checkpoint(data: bytes, folder: Path) -> None:
    """Load a checkpoint whose manifest is mutated."""
    (folder / manifest.NAME).write_bytes(data)
    checkpoint.load(folder)


READERS: dict[str, tuple[Callable[[bytes, Path], None], bytes, int]] = {
    "manifest": (read_manifest, manifest.seal(TABLE), 4),
    "sealed manifest": (read_sealed_manifest, manifest.seal(TABLE), 4),
    "weights": (read_weights, save(TENSORS), 4),
    "header": (read_header, save(TENSORS), 6),
    "checkpoint": (load_checkpoint, save(TENSORS), 1),
    "manifest of a checkpoint": (load_damaged_checkpoint, manifest.seal(TABLE), 1),
}
"""How each kind of bytes is read, what is mutated, and its share of all in twentieths."""


def mutate(count: int, folder: Path) -> dict[str, int]:
    """Read so many mutations; how often each was read, or refused by an error of ours. Any other error is raised."""
    outcomes = {"read": 0, "refused": 0}
    folder.mkdir()
    (folder / checkpoint.STATE).write_bytes(save(TENSORS))
    for kind, (read, data, share) in READERS.items():
        chance = random.Random(f"mutations of {kind}")
        for _ in range(count * share // 20):
            changed = mutated(data, chance)
            try:
                read(changed, folder)
                outcomes["read"] += 1
            except (DamagedError, RefusedError):
                outcomes["refused"] += 1
            except Exception as error:
                raise AssertionError(f"{kind}: {changed!r}") from error
    return outcomes


def test_no_mutation_raises_another_error(tmp_path):
    outcomes = mutate(COUNT, tmp_path / "3")
    assert sum(outcomes.values()) == COUNT
    assert min(outcomes.values()) > COUNT // 1000  # some leave what was written, as blanks in JSON do


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_mutation_of_a_million_raises_another_error(tmp_path):
    assert sum(mutate(SOAK, tmp_path / "3").values()) == SOAK
