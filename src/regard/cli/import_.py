"""Import of Hugging Face models as run directories: regard import."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli import Command, app
from regard.errors import ConfigError


@app.command("import", cls=Command, short_help="Convert a Hugging Face model to a run directory.")
def import_model(
    folder: Annotated[
        Path, typer.Argument(help="A directory written by save_pretrained of transformers.", metavar="HF_DIR")
    ],
    out: Annotated[Path | None, typer.Option(help="The new run directory.")] = None,
    task: Annotated[
        str | None, typer.Option(help="The task, from `regard list tasks`: translate, or caption for pictures.")
    ] = None,
    first: Annotated[
        str | None, typer.Option(help="Forced BOS: the token that every output begins with, such as its language.")
    ] = None,
) -> None:
    """Convert a model of Hugging Face's transformers to a run directory: Marian, BART, mBART, M2M100, NLLB, Pegasus, T5,
    mT5, and VisionEncoderDecoder: a ViT or DeiT with a GPT-2 or TrOCR.

    The result is a run directory for regard predict, evaluate, align, view and export, and train.init_from fine-tunes it.
    Texts are tokenized by its tokenizer.json; without one they are token ids ("17 4 250"). Weights come from
    model.safetensors; nothing in the directory is run, and transformers need not be installed.

    \b
    Example:
        regard import opus-mt-en-de/ --out run/
        regard import nllb-200-distilled-600M/ --first deu_Latn --out run/
        regard import vit-gpt2-image-captioning/ --out run/
    """
    if out is None:
        raise ConfigError("import needs a new run directory: --out DIR")
    from regard.boundary import boundary
    from regard.interop.huggingface.families import PICTURES, usual_task
    from regard.interop.huggingface.settings import opened, read
    from regard.interop.output import check_free, write_directory

    check_free(out)
    with boundary(folder):
        kind = opened(folder)[1]
        if kind != PICTURES:
            read(folder)  # raises for unsupported models before heavy imports
    task = task or usual_task(kind)
    from regard.interop.huggingface.importer import files
    from regard.interop.huggingface.vocab import TOKENIZER

    size = write_directory(out, files(folder, task, first))
    tokens = f"its {TOKENIZER}" if (folder / TOKENIZER).is_file() else f"spaces into ids (it has no {TOKENIZER})"
    typer.echo(f"{out}: a run of the task {task}, {size:,} bytes, its texts tokenized by {tokens}")
