"""Compiled steps, and what torch.compile made for them, kept in the run directory."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from regard.config import ConfigError
from regard.export.cache import FOLDER

if TYPE_CHECKING:
    from regard.trained import Trained

NAME = "compiled"
PLACE = "TORCHINDUCTOR_CACHE_DIR"
"""Where PyTorch looks for what it has compiled before; Triton's kernels lie below it."""
USUAL = "torchinductor_"
"""How the folder begins that PyTorch notes there itself, among the temporary files, once it has been asked."""


def compile_in(model: "Trained", run: Path) -> None:
    """Let a model search with compiled steps; what is compiled is kept beside it, and found by the next program."""
    device = next(model.model.parameters()).device.type
    if device != "cuda":
        raise ConfigError(
            f"--compile is for a GPU, and this model is on the {device}, where compiled steps are no faster: leave it out, "
            "or give --device cuda"
        )
    if model.config.model.decoder != "transformer":
        raise ConfigError(
            f"--compile is for transformer decoders, and this one is {model.config.model.decoder}, whose steps are replayed "
            "as they are: leave it out"
        )
    model.config = replace(model.config, search=replace(model.config.search, compile=True))
    beside(run)


def beside(run: Path) -> Path | None:
    """Tell PyTorch to keep what it compiles in a run directory: where it does, or None where that cannot be written to.

    PyTorch names each piece by the digest of what it was made from and of its own version, so that nothing stale is ever
    taken, and writes it in one move. A place that the user has chosen stays.
    """
    now = Path(os.environ.get(PLACE, USUAL))
    if not now.name.startswith(USUAL) and now.parts[-2:] != (FOLDER, NAME):  # that of another run was our own choice
        return None
    home = (run / FOLDER / NAME).absolute()
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(home, os.W_OK):
        return None
    os.environ[PLACE] = str(home)
    return home
