"""Open what was trained: a run directory, an ensemble of them, or graphs that were exported."""

from pathlib import Path

from regard import config as configuration
from regard import tasks
from regard.alignment.chosen import noted
from regard.families import family
from regard.seeing import Seeing
from regard.trained import Trained
from regard.training.device import choose
from regard.training.directory import ARCHIVE, CONFIG, ENSEMBLE, MODEL, STEP, verify
from regard.training.errors import DamagedError, RefusedError
from regard.training.manifest import NAME as MANIFEST
from regard.training.weights import restore


def load(directory: Path | str, device: str = "auto") -> Trained:
    """Open a model that writes text: a run directory, or an exported model in one file."""
    found = opened(directory, device)
    if not isinstance(found, Trained):
        raise RefusedError(
            f"{directory} is a run of {found.name}, which writes no text; regard.see opens it, and predict, evaluate, view "
            "and compare are the commands for it"
        )
    return found


def see(directory: Path | str, device: str = "auto") -> Seeing:
    """Open a model that tells what it sees: a run directory of classify, detect, vqa or retrieve."""
    found = opened(directory, device)
    if isinstance(found, Trained):
        raise RefusedError(f"{directory} is a run of {found.name}, which writes text; regard.load opens it")
    return found


def opened(directory: Path | str, device: str = "auto") -> Trained | Seeing:
    """Open a model of any kind. Every file is checked against the manifest; none is run."""
    from safetensors.torch import load as load_tensors

    path = Path(directory)
    if path.suffix == ARCHIVE and path.is_file():
        from regard.export.onnx.archive import unpacked

        with unpacked(path) as folder:
            return opened(folder, device)
    if not (path / MANIFEST).is_file():
        what = "has no manifest.json" if path.is_dir() else "is no directory"
        do = "give the directory that `regard train --out DIR` wrote"
        if (path / "config.json").is_file() and (path / MODEL).is_file():
            do = f"it looks like a model of transformers, of which `regard import {path} --out DIR` makes one"
        raise DamagedError(f"{path} is no trained model: it {what}; {do}")
    try:
        contents = verify(path)
    except DamagedError as error:
        raise DamagedError(
            f"{error}: copy {path} again from where it is whole, or train, import or export it anew"
        ) from error
    if ENSEMBLE in contents:
        from regard.ensembles.directory import opened as gathered

        return gathered(path, contents, device)
    for needed in (CONFIG, STEP if STEP in contents else MODEL):
        if needed not in contents:
            raise DamagedError(f"{path} has no {needed}: train into it first, or choose a directory that regard train made")
    table = configuration.without_removed(configuration.parse_text(contents[CONFIG].decode(), path / CONFIG))
    name = str(table.pop("task", ""))
    config = configuration.check(tasks.find(name).Config, table)
    strange = [each.name for side in ("codec", "source", "target", "joint") for each in path.glob(f"{side}.*")]
    if unlisted := sorted(set(strange) - contents.keys()):
        raise DamagedError(f"{path / unlisted[0]} is not in the manifest: it was put there by something else")
    codec = family(config).codec(path)
    if STEP in contents:
        from regard.export.onnx.engine import Onnx

        return Onnx(name, config, codec, contents, noted(path))
    model = tasks.build(config, codec)
    restore(model, load_tensors(contents[MODEL]), str(path / MODEL))
    found = family(config).opened(name, config, codec, model.to(choose(device)), noted(path))
    if isinstance(found, Seeing):
        found.home = path
    return found
