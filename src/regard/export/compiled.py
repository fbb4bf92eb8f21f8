"""Compiled steps: on a GPU what torch.compile made for them is kept in the run directory."""

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
    """Let a model search with compiled steps; what is compiled is kept, and found by the next program."""
    device = next(model.model.parameters()).device.type
    if device == "cpu":
        on_cpu(model)
    elif model.config.model.decoder != "transformer":
        raise ConfigError(
            f"--compile is for transformer decoders on a GPU, and this one is {model.config.model.decoder}, whose steps are "
            "replayed as they are: leave it out"
        )
    else:
        beside(run)
    model.config = replace(model.config, search=replace(model.config.search, compile=True))


def on_cpu(model: "Trained") -> None:
    """Make the machine code ready that searches on a CPU, or refuse a model that it does not take.

    Where it cannot be made, a warning says why, and the usual engine answers.
    """
    from regard.native.compiled.ready import reason, usable

    if why := reason(getattr(model.model, "decoder", None)):
        raise ConfigError(f"--compile does not cover this model on a CPU: {why}; leave it out")
    usable(model.config.search.precision)


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
