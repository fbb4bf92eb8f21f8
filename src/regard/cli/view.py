"""Attention viewer: regard view."""

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard import io
from regard.cli import Components, ModelCommand, app
from regard.cli._task_options import with_task_options
from regard.config import quoted, shortened
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.inference.predictor import Predictor
    from regard.viewer.html.server import Model
    from regard.viewer.trace import Trace

FILM = "film.attn.safetensors"
"""Trace that a training with `train.record_example` writes into its run directory."""


@app.command(cls=ModelCommand, short_help="View attention.")
@with_task_options("view")
def view(
    what: Annotated[
        list[str],
        typer.Argument(
            help="A trace or two; or a model or two, a directory of `regard train` or of Hugging Face, and an INPUT."
        ),
    ],
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page instead of serving it.")] = None,
    budget: Annotated[str | None, typer.Option(help="Size limit of the data of that page.  [default: 16MB]")] = None,
    figure: Annotated[
        str | None, typer.Option(help="Write a figure instead: heatmap, heads, lines, strength, overlay, graph.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File of the figure: .pdf, .svg or .png.")] = None,
    attention: Annotated[str | None, typer.Option(help="Attention of the figure.  [default: the last]")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="Head of the figure.  [default: the mean of all]")] = None,
    example: Annotated[int, typer.Option(min=0, help="Example of the figure, from 0.")] = 0,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam size; 1 is greedy.")] = None,
    state: Annotated[str, typer.Option(help="Initial state of the page, from `copy link`: '#a=decoder.cross&q=2'.")] = "",
    language: Annotated[str | None, typer.Option(help="en or zh.  [default: the browser's]")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Serve at this port; 0 takes any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    component: Components = None,
    task_options: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Show every attention of a model: its place in the network, its strength over time, and its weights.

    The page is served on this machine alone until Ctrl-C. Two traces, or two directories and one INPUT, are compared. A
    directory without an INPUT shows the snapshots of training that `regard train --train.record_example=...` recorded.

    \b
    Example:
        regard view run/ "Tom chases Jerry"
        regard view additive.attn.safetensors luong.attn.safetensors
        regard view t.attn.safetensors --html t.html
        regard view t.attn.safetensors --figure heatmap --out fig.pdf
        regard view run/ photo.png --question "what colour is the circle?"
        regard view hf_model/ "Tom chases Jerry" --html t.html
    """
    figure_options = {"--out": out, "--attention": attention, "--head": head, "--example": example or None}
    unused = next((name for name, value in figure_options.items() if value is not None), None)
    if figure is None and unused is not None:
        raise ConfigError(f"{unused} is for a figure; add --figure heatmap, or drop it")
    if budget is not None and html is None:
        raise ConfigError(
            "--budget is for a page that is written; add --html FILE, or drop it: a served page has everything"
        )
    if figure is not None and html is not None:
        raise ConfigError("--figure and --html are two things; ask for one at a time")
    output = out or html
    if output is not None:
        io.check_target(output)
    traces = load_traces(what, beam, device, task_options)
    if figure is not None and len(traces) > 1:
        raise ConfigError("a figure is of one trace, got two; a page compares them: drop --figure")
    try:
        if figure is not None:
            _save_figure(traces[0], figure, out, attention, head, example)
        elif html is not None:
            _write(traces, html, budget, state, language)
        else:
            _serve(traces, state, language, port, browser, _model(what, beam, device, task_options))
    except (ValueError, LookupError) as error:  # unknown attentions, heads or states: the text has the reason
        raise ConfigError(str(error.args[0]) if error.args else str(error)) from error


def load_traces(
    what: list[str], beam: int | None, device: str, options: Mapping[str, str] = MappingProxyType({})
) -> "list[Trace]":
    """Traces read from files, or recorded by running each directory's model on the INPUT, which comes last."""
    texts = [argument for place, argument in enumerate(what) if _is_input(Path(argument), place)]
    paths = [Path(argument) for argument in what if argument not in texts]
    if len(texts) > 1 or (texts and what[-1] != texts[0]) or not paths:
        raise DataError(
            f"there is no {shortened(texts[0])}; give a trace, or a directory that `regard train` made and one INPUT "
            "after it"
        )
    if len(paths) > 2:
        raise DataError(f"a page shows one trace or compares two, got {len(paths)}")
    directories = list(filter(_is_model, paths))
    if texts and not directories:
        raise DataError(f"{paths[0]} is a trace, which holds its inputs already; drop {texts[0]!r}")
    if options and not texts:
        raise DataError(f"--{next(iter(options))} is for a model and an INPUT; a trace holds its inputs, so drop it")
    if beam is not None and not texts:
        raise DataError("--beam is for a model; a trace holds a finished search, so drop it")
    if directories and not texts and not all((path / FILM).is_file() for path in directories):
        raise DataError(f'say what to show it: regard view {directories[0]} "an INPUT", or a trace of it')
    return name_traces([_trace(path, texts[0] if texts else None, beam, device, options) for path in paths], paths)


def name_traces(traces: "list[Trace]", paths: list[Path]) -> "list[Trace]":
    """Traces with distinct names: two of one name, such as two models of one task, are named after their files."""
    if len({trace.name for trace in traces}) == len(traces):
        return traces
    names = [path.name.removesuffix(".safetensors").removesuffix(".attn") for path in paths]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    return [dataclasses.replace(trace, name=name) for trace, name in zip(traces, names, strict=True)]


def _is_input(path: Path, place: int) -> bool:
    """True for an input of a model: a text, a picture or, after a model, a folder of frames."""
    from regard.manifest import NAME

    if not os.path.exists(path):  # False, too, where a text is too long for a name
        return True
    if path.is_dir():
        return place > 0 and not (path / NAME).exists() and not (path / FILM).exists()
    return not _is_model(path) and path.suffix != ".safetensors"


def _is_model(path: Path) -> bool:
    """True for a model: a run directory, or an exported model in a file."""
    from regard.training.run_directory import ARCHIVE

    return path.is_dir() or path.suffix == ARCHIVE


def _trace(path: Path, text: str | None, beam: int | None, device: str, options: Mapping[str, str]) -> "Trace":
    from regard.viewer.io import load as read

    if not _is_model(path) or text is None:
        try:
            return read(path if path.is_file() else path / FILM)
        except ValueError as error:
            raise DataError(str(error)) from error
    return _record(path, text, beam, device, options, _load)


def _load(path: Path, beam: int | None, device: str, options: Mapping[str, str]) -> "Predictor":
    """A model with the options of the command."""
    from regard.inference.load import load

    model = load(path, device)
    model.check_search_options({"beam": beam}, ())
    model.set_options(options)
    return model


def _record(
    path: Path,
    text: str,
    beam: int | None,
    device: str,
    options: Mapping[str, str],
    load: "Callable[[Path, int | None, str, Mapping[str, str]], Predictor]",
) -> "Trace":
    """Trace of what the model of a directory does with an input; `load` opens a model that `regard train` made."""
    from regard.interop.huggingface.local_directory import is_model_directory, trace_input

    if is_model_directory(path):
        if options:
            raise DataError(f"--{next(iter(options))} is for a model that `regard train` made; drop it")
        from regard.training.device import select_device

        return dataclasses.replace(
            trace_input(path, text, beam=beam, device=str(select_device(device))), name=path.resolve().name
        )
    model = load(path, beam, device, options)
    text = model.complete(text)
    if not model.is_known(text):
        raise DataError(f"{path} has no token of {quoted(text)} in its vocabulary; write it as the training data is")
    return dataclasses.replace(
        model.trace([text], beam=beam), name=path.resolve().name
    )  # two models of one task need two names


def _write(traces: "list[Trace]", html: Path, budget: str | None, state: str, language: str | None) -> None:
    from regard.viewer.html.render import BUDGET
    from regard.viewer.html.view import View

    View(traces, state, language).save(html, budget or BUDGET)
    typer.echo(f"{html} ({html.stat().st_size:,} bytes, needs no network)")


def _save_figure(trace: "Trace", kind: str, out: Path | None, attention: str | None, head: int | None, example: int) -> None:
    if out is None:
        raise ConfigError("say where the figure goes: --out fig.pdf, .svg or .png")
    if out.suffix.lower() not in (".pdf", ".svg", ".png"):
        raise ConfigError(f"a figure is a .pdf, .svg or .png, got --out {out}")
    from regard.viewer.figure import figure

    figure(trace, kind, attention=attention, head=head, example=example).savefig(out)
    typer.echo(str(out))


PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
"""Endings of pictures, which a page of a model that looks at pictures takes."""


def _model(what: list[str], beam: int | None, device: str, options: Mapping[str, str]) -> "Model | None":
    """Recorder of further inputs of a served page: the models of the command, which stay loaded once they were asked."""
    from regard.viewer.html.server import Model

    *paths, last = map(Path, what)
    if not paths or not _is_input(last, len(paths)) or not all(map(_is_model, paths)):
        return None  # traces, which hold their inputs
    picture = os.path.exists(last)
    if picture and (last.is_dir() or last.suffix.lower() not in PICTURES):
        return None  # sounds and frames have no field on the page
    opened: dict[Path, Predictor] = {}

    def load(path: Path, *how: Any) -> "Predictor":
        if path not in opened:
            opened[path] = _load(path, *how)
        return opened[path]

    def record(text: str) -> "list[Trace]":
        return name_traces([_record(path, text, beam, device, options, load) for path in paths], paths)

    def record_picture(content: bytes) -> "list[Trace]":
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "picture"
            file.write_bytes(content)
            return record(str(file))

    return Model("picture", record_picture) if picture else Model("text", record)


def _serve(
    traces: "list[Trace]", state: str, language: str | None, port: int, browser: bool, model: "Model | None" = None
) -> None:
    from regard.viewer.html.server import Server
    from regard.viewer.html.view import announce

    with Server(traces, port=port, state=state, language=language, model=model) as server:
        announce(server, browser, server.opens)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            typer.echo("", err=True)
