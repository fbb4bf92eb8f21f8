"""Ask a trained model: regard predict."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard import io
from regard.cli import Command, app
from regard.cli._bad_inputs import Unread, unread
from regard.cli._engine_report import report_engines
from regard.cli._fingerprint import source, work
from regard.cli._image_options import asks, posed, sees
from regard.cli._journal import Journal
from regard.cli._predict_io import Asking, to_file, to_stream
from regard.cli._progress import Pace
from regard.cli._search_options import apart, search_by, wished
from regard.cli._stdout import StandardOutput
from regard.cli._streaming import LISTEN, listened, streamed, way
from regard.cli.index import searches
from regard.cli.train import ANY
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.inference.predictor import Predictor

TRACED = 32
"""How many inputs a trace shows at most: more than anybody looks through, and few enough to open at once."""
WINDOW, READ = 10_000, 1024
"""Lines that are sorted by length and answered together, on the way to a file and to whoever reads along; a person who types
is answered line by line."""


@app.command(cls=Command, short_help="Ask a trained model.", context_settings=ANY)
def predict(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train` made.", metavar="DIR")],
    text: Annotated[
        str | None,
        typer.Argument(help="A text, or the path of a picture; without it, --file or standard input.", metavar="INPUT"),
    ] = None,
    file: Annotated[str | None, typer.Option(help="A file with one input on each line.")] = None,
    question: Annotated[
        str | None, typer.Option(help="What to ask of each picture (vqa); without it, an input is PATH TAB QUESTION.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the answers here.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses followed at once; 1 is greedy.")] = None,
    nbest: Annotated[int, typer.Option(min=1, help="How many answers to each input.")] = 1,
    align: Annotated[bool, typer.Option("--align", help="Show what each piece of the answer looked at.")] = False,
    unknown: Annotated[
        str | None,
        typer.Option(help="Words it cannot write: keep, copy the source word, or a file of WORD TAB TRANSLATION."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Every answer begins so; the last word may go on, unless a space ends it.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Every answer holds this phrase; may be repeated.", metavar="PHRASE")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="No answer holds this phrase; may be repeated.", metavar="PHRASE")
    ] = None,
    constraints: Annotated[
        str | None, typer.Option(help="A file with a JSON object of prefix, include and exclude for each input.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each input.")] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Write where the model looked here, for `regard view`: NAME.attn.safetensors.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="What a model of `retrieve` searches, from `regard index`; else its samples.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    engine: Annotated[str, typer.Option(help="What computes: native, onnx, ctranslate2.")] = "native",
    precision: Annotated[str, typer.Option(help="In which numbers it computes: float32, int8; on a GPU bf16.")] = "float32",
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the search, once; what is compiled lies in your cache folder.")
    ] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Write each answer as it is decided, piece by piece.")] = False,
    listen: Annotated[
        bool, typer.Option("--listen", help="Answer standard input while it still arrives (monotonic models).")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Report which decoding engine runs, and why not a faster one.")
    ] = False,
) -> None:
    """Answer one input, or every line of a file or of standard input.

    With --nbest the score stands before each answer, and an empty line between inputs. Any setting of the search is an
    option by its dotted path: --search.beam_groups=4 --search.mbr=chrf.

    \b
    Example:
        echo "Tom chases Jerry" | regard predict run/ --beam 5 --nbest 3 --align
        regard predict run/ --file source.txt --out answers.txt
        regard predict run/ "Tom chases Jerry" --trace tom.attn.safetensors
        regard predict run/ "Tom chases Jerry" --prefix 汤姆 --exclude 喜欢 --search.block_ngrams=3
        regard predict run/ --file source.txt --engine ctranslate2 --precision int8
        regard predict run/ --file source.txt --device cpu --compile
        regard predict run/ --file source.txt --stream
        regard predict run/ photo.png --align
        regard predict run/ "a red heart" --index pictures.safetensors --nbest 10
        regard predict run/ photo.png --question "what colour is the circle?"
    """
    from regard.inference.sequence_predictor import SequencePredictor
    from regard.interop.engine import opened, traceable

    text, settings = apart(text, context.args, "predict")
    piecewise = way(stream, listen, context.params, text)
    if trace is not None:
        _writable(trace)
        traceable(engine)
    if out is not None:
        io.check_target(out)
    asked = wished(posed(_inputs(text, file), question), prefix, include or [], exclude or [], constraints)
    model = opened(directory, device, engine, precision, compile)
    sees(model, context.params, settings)
    searches(model, index)
    asks(model, question)
    search_by(model, settings, beam)
    if verbose:
        report_engines(context, model, engine)
    if trace is not None:
        _watched(model)
    noted: list[tuple[str, ConstraintSpec]] = []
    typed = text is None and file in (None, "-") and sys.stdin is not None and sys.stdin.isatty()
    window = 1 if typed else READ if out is None else WINDOW
    missed = unread(model, text, file)
    asking, inputs = Asking(model, beam, nbest, align, unknown, as_json, missed), _noting(asked, noted)
    if piecewise is not None and isinstance(model, SequencePredictor):
        output = StandardOutput()
        strange = listened(model, output, missed) if piecewise == LISTEN else streamed(model, asked, output, missed)
    elif out is None:
        strange = to_stream(asking, inputs, StandardOutput(), window)
    else:
        given, named = source(file), {"constraints": constraints, "unknown": unknown}
        named |= {} if index is None else {"index": str(index)}
        told = {"prefix": prefix, "include": include, "exclude": exclude, "nbest": nbest, "align": align, "json": as_json}
        told |= {} if question is None else {"question": question}
        how = {**told, "window": window, "engine": engine, "precision": precision}
        with Journal(out, work(directory, model, given, named, **how)) as journal:
            if journal.word:
                typer.echo(journal.word, err=True)
            pace = Pace(given.lines, journal.head.lines + len(journal.noted))
            strange = to_file(asking, inputs, journal, window, pace)
    if trace is not None:
        lost = missed.texts if missed else ()
        _trace(model, [each for each in noted if each[0] not in lost], beam, trace)
    if strange.many:
        last = missed or Unread("input", tokens=model.codec.max_source_length - 1)
        raise DataError(last.last(strange.first, strange.many, begun=piecewise == LISTEN))


def _writable(path: Path) -> None:
    """Refuse a name that no trace can be written to, before anything is computed."""
    if not path.name.endswith(".safetensors"):
        raise DataError(f"--trace writes a file called NAME.attn.safetensors, got {path.name!r}; name it so")
    io.check_target(path)


def _watched(model: "Predictor") -> None:
    """Refuse a trace of an answer that is found in numbers which no trace shows, before anything is computed."""
    from regard.inference.sequence_predictor import SequencePredictor
    from regard.inference.sequence_trace import check_traceable

    if isinstance(model, SequencePredictor):
        check_traceable(model.config.search)


def _trace(model: "Predictor", noted: "list[tuple[str, ConstraintSpec]]", beam: int | None, path: Path) -> None:
    """Write the trace of what was asked, and say what it took."""
    from regard.inference.forward_predictor import ForwardPredictor
    from regard.viewer.io import save

    asked = [each for each in noted[:TRACED] if each[0].strip() and model.fits(each[0])]
    if not asked:
        raise DataError(
            "--trace has nothing to show: there is no input in which the model knows anything and that is not longer than "
            "what it reads"
        )
    texts = [text for text, _ in asked]
    if isinstance(model, ForwardPredictor):
        found = model.trace(texts)
    else:
        found = model.trace(texts, beam=beam, constraints=[wish for _, wish in asked])
    save(found, path)
    more = f" (the first {TRACED} inputs; --file with fewer lines picks others)" if len(noted) > TRACED else ""
    typer.echo(" ".join((f"{path}: {len(asked)} traced{more}.", *found.notes)), err=True)


def _noting(
    inputs: "Iterable[tuple[str, ConstraintSpec]]", noted: "list[tuple[str, ConstraintSpec]]"
) -> "Iterator[tuple[str, ConstraintSpec]]":
    """The same inputs, of which the first are noted down, and one more to know that there were more."""
    for each in inputs:
        if len(noted) <= TRACED:
            noted.append(each)
        yield each


def _inputs(text: str | None, file: str | None) -> Iterator[str]:
    from regard.data.lines import lines

    if text is not None and file is not None:
        raise DataError("give an INPUT or --file, not both")
    if text is not None:
        return iter([text])
    return (line.text for line in lines(file or "-"))
