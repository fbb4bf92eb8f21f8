"""Prediction with a trained model: regard predict."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard import io
from regard.cli import Components, ModelCommand, app
from regard.cli._bad_inputs import BadInputs, collect_bad_inputs
from regard.cli._engine_report import report_engines
from regard.cli._fingerprint import digest_file, digest_job
from regard.cli._image_options import append_question, check_question, check_text_options
from regard.cli._journal import Journal
from regard.cli._predict_io import AnswerWriter, write_to_file, write_to_stream
from regard.cli._progress import ProgressLine
from regard.cli._search_options import override_search, read_constraints, split_arguments
from regard.cli._stdout import StandardOutput
from regard.cli._streaming import LISTEN, answer_stdin, select_streaming, write_streamed
from regard.cli.index import use_index
from regard.cli.train import ANY
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.inference.forward_predictor import Seeing
    from regard.inference.sequence_predictor import Trained

TRACED = 32
"""Most inputs of a trace: few enough to open quickly."""
WINDOW, READ = 10_000, 1024
"""Lines that are sorted by length and answered together, for a file and for a stream; input from a terminal: one."""


@app.command(cls=ModelCommand, short_help="Predict with a trained model.", context_settings=ANY)
def predict(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train` made.", metavar="DIR")],
    text: Annotated[
        str | None,
        typer.Argument(help="A text, or the path of a picture; without it, --file or standard input.", metavar="INPUT"),
    ] = None,
    file: Annotated[str | None, typer.Option(help="A file with one input on each line.")] = None,
    question: Annotated[
        str | None, typer.Option(help="Question about each picture (vqa); without it, an input is PATH TAB QUESTION.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the answers here.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam size; 1 is greedy.")] = None,
    nbest: Annotated[int, typer.Option(min=1, help="Number of answers to each input.")] = 1,
    align: Annotated[bool, typer.Option("--align", help="Print the attention weights of each piece of the answer.")] = False,
    unknown: Annotated[
        str | None,
        typer.Option(help="Unknown words: keep, copy the source word, or a file of WORD TAB TRANSLATION."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Prefix of every answer; the last word may continue, unless a space ends it.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="A phrase that every answer contains; may be repeated.", metavar="PHRASE")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="A phrase that no answer contains; may be repeated.", metavar="PHRASE")
    ] = None,
    constraints: Annotated[
        str | None, typer.Option(help="A file with a JSON object of prefix, include and exclude for each input.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each input.")] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Write an attention trace for `regard view`: NAME.attn.safetensors.")
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(help="Index that a model of `retrieve` searches, from `regard index`; by default its samples."),
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    engine: Annotated[str, typer.Option(help="Engine: native, onnx, ctranslate2.")] = "native",
    precision: Annotated[str, typer.Option(help="Precision: float32, int8; on a GPU bf16.")] = "float32",
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the search, once; compiled code is in your cache folder.")
    ] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Stream each answer while it is decoded.")] = False,
    listen: Annotated[
        bool, typer.Option("--listen", help="Decode standard input simultaneously, while it arrives (monotonic models).")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Report which decoding engine runs, and why not a faster one.")
    ] = False,
    component: Components = None,
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
    from regard.inference.forward_predictor import Seeing
    from regard.interop.engine import opened, traceable

    text, settings = split_arguments(text, context.args, "predict")
    piecewise = select_streaming(stream, listen, context.params, text)
    if trace is not None:
        _check_trace_path(trace)
        traceable(engine)
    if out is not None:
        io.check_target(out)
    inputs = read_constraints(
        append_question(_inputs(text, file), question), prefix, include or [], exclude or [], constraints
    )
    model = opened(directory, device, engine, precision, compile)
    check_text_options(model, context.params, settings)
    use_index(model, index)
    check_question(model, question)
    override_search(model, settings, beam)
    if verbose:
        report_engines(context, model, engine)
    if trace is not None:
        _check_traceable(model)
    noted: list[tuple[str, ConstraintSpec]] = []
    typed = text is None and file in (None, "-") and sys.stdin is not None and sys.stdin.isatty()
    window = 1 if typed else READ if out is None else WINDOW
    bad = collect_bad_inputs(model, text, file)
    writer, inputs = AnswerWriter(model, beam, nbest, align, unknown, as_json, bad), _keep_first(inputs, noted)
    if piecewise is not None and not isinstance(model, Seeing):
        output = StandardOutput()
        listening = piecewise == LISTEN
        unanswered = answer_stdin(model, output, bad) if listening else write_streamed(model, inputs, output, bad)
    elif out is None:
        unanswered = write_to_stream(writer, inputs, StandardOutput(), window)
    else:
        source, files = digest_file(file), {"constraints": constraints, "unknown": unknown}
        files |= {} if index is None else {"index": str(index)}
        options = {"prefix": prefix, "include": include, "exclude": exclude, "nbest": nbest, "align": align, "json": as_json}
        options |= {} if question is None else {"question": question}
        options |= {"window": window, "engine": engine, "precision": precision}
        with Journal(out, digest_job(directory, model, source, files, **options)) as journal:
            if journal.message:
                typer.echo(journal.message, err=True)
            progress = ProgressLine(source.lines, journal.head.lines + len(journal.answers_of_window))
            unanswered = write_to_file(writer, inputs, journal, window, progress)
    if trace is not None:
        skipped = bad.texts if bad else ()
        _trace(model, [each for each in noted if each[0] not in skipped], beam, trace)
    if unanswered.many:
        bad = bad or BadInputs("input", tokens=model.codec.max_source_length - 1)
        raise DataError(bad.summarise(unanswered.first, unanswered.many, begun=piecewise == LISTEN))


def _check_trace_path(path: Path) -> None:
    """Raise for a path that no trace can be written to, before anything is computed."""
    if not path.name.endswith(".safetensors"):
        raise DataError(f"--trace writes a file called NAME.attn.safetensors, got {path.name!r}; name it so")
    io.check_target(path)


def _check_traceable(model: "Trained | Seeing") -> None:
    """Raise where a trace cannot show the precision of the search, before anything is computed."""
    from regard.inference.sequence_predictor import Trained
    from regard.viewer.record.predicted import watched

    if isinstance(model, Trained):
        watched(model.config.search)


def _trace(model: "Trained | Seeing", noted: "list[tuple[str, ConstraintSpec]]", beam: int | None, path: Path) -> None:
    """Write the trace of the inputs, and report it."""
    from regard.inference.forward_predictor import Seeing
    from regard.viewer.io import save

    specs = [each for each in noted[:TRACED] if each[0].strip() and model.reads(each[0])]
    if not specs:
        raise DataError(
            "--trace has nothing to show: there is no input in which the model knows anything and that is not longer than "
            "what it reads"
        )
    texts = [text for text, _ in specs]
    if isinstance(model, Seeing):
        recorded = model.trace(texts)
    else:
        recorded = model.trace(texts, beam=beam, asked=[spec for _, spec in specs])
    save(recorded, path)
    more = f" (the first {TRACED} inputs; --file with fewer lines picks others)" if len(noted) > TRACED else ""
    typer.echo(" ".join((f"{path}: {len(specs)} traced{more}.", *recorded.notes)), err=True)


def _keep_first(
    inputs: "Iterable[tuple[str, ConstraintSpec]]", noted: "list[tuple[str, ConstraintSpec]]"
) -> "Iterator[tuple[str, ConstraintSpec]]":
    """The inputs unchanged; the first are appended to `noted`, and one more to detect further ones."""
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
