"""Export of a trained model to ONNX, CTranslate2 or Hugging Face: regard export."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from regard.cli import Components, ModelCommand, app
from regard.errors import ConfigError

FORMATS = ("onnx", "ctranslate2", "huggingface")


@app.command(cls=ModelCommand, short_help="Write a trained model in the format of another library.")
def export(
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train` made.", metavar="DIR")],
    to: Annotated[str, typer.Option(help=f"The format: {', '.join(FORMATS)}.")] = "",
    out: Annotated[
        Path | None, typer.Option(help="The new directory; for onnx, NAME.zip is one file.", show_default="DIR-FORMAT")
    ] = None,
    precision: Annotated[str, typer.Option(help="Precision of the stored weights: float32, int8.")] = "float32",
    component: Components = None,
) -> None:
    """Write a trained model in the format of another library, with its vocabulary.

    A model that a format cannot express is refused, with the reason.

    \b
    Example:
        regard export run/ --to onnx                      writes run-onnx/
        regard export run/ --to onnx --out model.zip
        regard export run/ --to ctranslate2 --precision int8 --out fast/
        regard export run/ --to huggingface --out hub/
    """
    if to not in FORMATS:
        raise ConfigError(f"--to needs to be one of {', '.join(FORMATS)}, got {to!r}")
    typer.echo(
        import_module(f"regard.interop.{to}.write").write(
            directory, out or default_output(directory, to, precision), precision
        )
    )


def default_output(directory: Path, to: str, precision: str) -> Path:
    """Default path of an export: beside the run, named after it and the format."""
    path = directory.resolve()
    return path.with_name("-".join([path.name, to, *([] if precision == "float32" else [precision])]))
