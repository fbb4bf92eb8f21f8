"""Initialisation from another run (fine-tuning): its weights and vocabularies.

A resumed training has all that it needs in its own directory, so that the other run may be removed by then.
"""

from collections.abc import Callable, Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.boundary import boundary
from regard.config import plain
from regard.errors import DamagedError, RefusedError
from regard.inference.load import load, read_directory
from regard.inference.predictor import Predictor
from regard.training import checkpoint
from regard.training.run_directory import CONFIG, flatten
from regard.training.snapshot import retry_on_publish
from regard.training.state_dict import check_shapes, named_tensors, restore, weights


class InitialRun(NamedTuple):
    """Codec and initial weights; no weights where a training is resumed from its own checkpoint."""

    codec: Any
    tensors: Mapping[str, Tensor]
    origin: str

    def give(self, model: nn.Module) -> None:
        """Let a model have the weights; the first that does not fit is named."""
        if self.tensors:
            restore(model, self.tensors, self.origin)


def start(config: Any, load_codec: Callable[[Traversable], Any], out: Path | None = None) -> InitialRun | None:
    """Codec and weights of the run that train.init_from names; None where it names none.

    `load_codec` reads the codec of a run of this family, and `out` is the directory that is trained into.
    """
    if config.train.init_from is None:
        return None
    if out is not None and has_checkpoint(out):
        try:
            with boundary(out):
                folder = retry_on_publish(out, lambda sealed: read_directory(out, sealed)).folder
                return InitialRun(load_codec(folder).adapt(config.data), {}, str(out))
        except (DamagedError, RefusedError):  # lost or damaged; the run that it came from has it too
            pass
    predictor = load(config.train.init_from, "cpu")
    if predictor.config.FAMILY != config.FAMILY:
        raise RefusedError(
            f"train.init_from={config.train.init_from} is a run of {predictor.name}, which reads {predictor.codec.kind}"
        )
    check_tokens(predictor, config.data, config.train.init_from)
    codec, tensors = predictor.codec.adapt(config.data), weights(predictor.model)
    check_model(predictor, config, codec, tensors)
    return InitialRun(codec, tensors, f"train.init_from={config.train.init_from}")


def has_checkpoint(out: Path) -> bool:
    """True if a directory has a whole checkpoint, from which a training would resume."""
    folder = out / "checkpoints"
    for step in reversed(checkpoint.steps(folder) if folder.is_dir() else []):
        try:
            return bool(checkpoint.load(folder / str(step)))
        except DamagedError:
            continue
    return False


def check_tokens(predictor: Predictor, now: Any, origin: str) -> None:
    """Refuse settings that make a codec, and that the one taken over does not heed."""
    for name in predictor.codec.settings:
        old, new = getattr(predictor.config.data, name), getattr(now, name)
        if old != new:
            raise RefusedError(
                f"train.init_from={origin} was trained with data.{name}={old}, and now it is {new}: its tokens are taken "
                f"over, so that their numbers mean the same. {name_config(predictor.name, origin)}"
            )


def check_model(predictor: Predictor, config: Any, codec: Any, tensors: Mapping[str, Tensor]) -> None:
    """Refuse a config whose model the weights do not fit, before data is read, and name the settings that differ."""
    origin = str(config.train.init_from)
    with torch.device("meta"):  # which takes neither time nor memory
        model = predictor.task.build(config, codec)
    try:
        check_shapes(named_tensors(model), tensors, f"train.init_from={origin}")
    except RefusedError as error:
        before, now = (flatten(plain(settings.model)) for settings in (predictor.config, config))
        pairs = {name: (before.get(name), now.get(name)) for name in sorted({*before, *now})}
        changes = [f"model.{name} is {old} there and {new} here" for name, (old, new) in pairs.items() if old != new]
        if not changes:
            raise
        raise RefusedError(
            f"train.init_from={origin} is of another model: {', '.join(changes)}. {name_config(predictor.name, origin)}"
        ) from error


def name_config(task: str, origin: str) -> str:
    """Advice to begin with the settings of the other run."""
    file = Path(origin) / CONFIG
    return f"Begin with its settings: regard train {task} {file} --train.init_from={origin} --out DIR"
