"""Prediction with a trained model: regard predict."""

import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, cast

import typer

from regard import io
from regard.cli import Components, ModelCommand, app
from regard.cli._bad_inputs import BadInputs, collect_bad_inputs
from regard.cli._chat import converse
from regard.cli._engine_report import report_engines
from regard.cli._fingerprint import digest_file, digest_job
from regard.cli._journal import Journal
from regard.cli._predict_io import AnswerWriter, Unanswered, write_to_file, write_to_stream
from regard.cli._predict_output import build_output_files
from regard.cli._progress import ProgressLine
from regard.cli._search_options import override_search, read_constraints, split_arguments
from regard.cli._stdout import StandardOutput
from regard.cli._streaming import LISTEN, answer_stdin, select_streaming, write_streamed
from regard.cli._task_options import files_of, with_task_options
from regard.cli.train import ANY
from regard.errors import ConfigError, DataError, DataWarning

if TYPE_CHECKING:
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.inference.predictor import Predictor
    from regard.inference.sequence_predictor import SequencePredictor

TRACED = 32
"""Most inputs of a trace: few enough to open quickly."""
WINDOW, READ = 10_000, 1024
"""Lines that are sorted by length and answered together, for a file and for a stream; input from a terminal: one."""


@app.command(cls=ModelCommand, short_help="Predict with a trained model.", context_settings=ANY)
@with_task_options("predict")
def predict(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train` made.", metavar="DIR")],
    text: Annotated[
        str | None,
        typer.Argument(help="A text, or the path of a picture; without it, --file or standard input.", metavar="INPUT"),
    ] = None,
    file: Annotated[str | None, typer.Option(help="A file with one input on each line.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the answers here; of a model that speaks, a sound file, or a folder of them.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam size; 1 is greedy.")] = None,
    nbest: Annotated[int, typer.Option(min=1, help="Number of answers to each input.")] = 1,
    align: Annotated[bool, typer.Option("--align", help="Print the attention weights of each piece of the answer.")] = False,
    mark_copied: Annotated[
        bool, typer.Option("--mark-copied", help="Put [copied words] of an answer in brackets (models that copy).")
    ] = False,
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
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    engine: Annotated[str, typer.Option(help="Engine: native, onnx, ctranslate2.")] = "native",
    precision: Annotated[str, typer.Option(help="Precision: auto, float32, int8; on a GPU bf16.")] = "auto",
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile the search, once; compiled code is in your cache folder.")
    ] = False,
    stream: Annotated[bool, typer.Option("--stream", help="Stream each answer while it is decoded.")] = False,
    listen: Annotated[
        bool, typer.Option("--listen", help="Decode standard input simultaneously, while it arrives (monotonic models).")
    ] = False,
    chat: Annotated[
        bool, typer.Option("--chat", help="Converse: answer each line with all turns before it (dialogue models).")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Report which decoding engine runs, and why not a faster one.")
    ] = False,
    component: Components = None,
    task_options: Mapping[str, str] = MappingProxyType({}),
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
        regard predict run/ --file mail.txt --mark-copied
        regard predict run/ --chat
        regard predict run/ photo.png --align
        regard predict run/ "a red heart" --index pictures.safetensors --nbest 10
        regard predict run/ photo.png --question "what colour is the circle?"
    """
    from regard.interop.engine import opened, traceable

    text, settings = split_arguments(text, context.args, "predict")
    piecewise = select_streaming(stream, listen, context.params, text)
    if trace is not None:
        _check_trace_path(trace)
        traceable(engine)
    lines = _inputs(text, file)
    model = opened(directory, device, engine, precision, compile)
    if out is not None and model.output_suffix is None:
        io.check_target(out)
    model.check_search_options(context.params, settings)
    model.set_options(task_options)
    grouped = lines if text is not None else model.group_lines(lines)
    completed = (model.complete(line, number) for number, line in enumerate(grouped, 1))
    inputs = read_constraints(completed, prefix, include or [], exclude or [], constraints)
    override_search(model, settings, beam)
    if verbose:
        report_engines(context, model, engine)
    if chat:
        _check_alone(text, file, out)
        converse(model, beam)
        return
    if trace is not None:
        model.check_traceable()
    noted: list[tuple[str, ConstraintSpec]] = []
    typed = text is None and file in (None, "-") and sys.stdin is not None and sys.stdin.isatty()
    window = 1 if typed else READ if out is None else WINDOW
    bad = collect_bad_inputs(model, text, file)
    if not model.codec.reads_files:
        inputs = inputs if model.has_tabs else _warn_of_tabs(inputs, file or "input")
        if text is not None and _is_file(text):
            advice = f"{text} is a file, and its name is read as the input; --file {text} answers its lines"
            warnings.warn(advice, DataWarning, stacklevel=2)
    outputs = build_output_files(model, out, several=text is None)
    if outputs is not None and text is not None and not text.strip():
        raise DataError(f"--out={out} needs an input to answer, got an empty one; write one")
    writer = AnswerWriter(model, beam, nbest, align, unknown, as_json, bad, outputs, mark_copied)
    inputs = _keep_first(inputs, noted)
    begun = time.monotonic()
    if piecewise is not None:
        answer = answer_stdin if piecewise == LISTEN else partial(write_streamed, inputs=inputs)
        unanswered = answer(cast("SequencePredictor", model), stream=StandardOutput(), bad_inputs=bad)
    elif out is None or outputs is not None:
        unanswered = write_to_stream(writer, inputs, StandardOutput(), window)
    else:
        source, files = digest_file(file), {"constraints": constraints, "unknown": unknown}
        files |= files_of(task_options)
        options = {"prefix": prefix, "include": include, "exclude": exclude, "nbest": nbest, "align": align, "json": as_json}
        options |= {name: value for name, value in task_options.items() if name not in files}
        options |= {"mark_copied": True} if mark_copied else {}
        options |= {"window": window, "engine": engine, "precision": precision}
        with Journal(out, digest_job(directory, model, source, files, **options)) as journal:
            if journal.message:
                typer.echo(journal.message, err=True)
            progress = ProgressLine(source.lines, journal.head.lines + len(journal.answers_of_window))
            unanswered = write_to_file(writer, inputs, journal, window, progress)
    report_end(writer, unanswered, time.monotonic() - begun, quiet=text is not None or typed)
    if trace is not None:
        skipped = bad.texts if bad else ()
        _trace(model, [entry for entry in noted if entry[0] not in skipped], beam, trace)
    if unanswered.many:
        bad = bad or BadInputs("input", tokens=model.codec.max_source_length - 1, alone=True)
        bad.alone = bad.alone or unanswered.many == unanswered.inputs
        raise DataError(bad.summarise(unanswered.first, unanswered.many, begun=piecewise == LISTEN, reasons=writer.reasons))


def report_end(writer: AnswerWriter, unanswered: Unanswered, seconds: float, quiet: bool) -> None:
    """Report the number of inputs and the time, unless `quiet`, and the pictures on which a detector found nothing."""
    if empty := len(writer.without_boxes):
        which = f" on {empty:,} of {unanswered.inputs:,} pictures" if unanswered.inputs > 1 else ""
        typer.echo(
            f"nothing was detected{which} that the model is sure of; --nbest 5 has the boxes that come nearest", err=True
        )
    if unanswered.inputs and not quiet:
        typer.echo(f"{unanswered.inputs:,} line{'s' * (unanswered.inputs != 1)} in {seconds:.1f} s", err=True)


def _warn_of_tabs(inputs: "Iterable[tuple[str, ConstraintSpec]]", name: str) -> "Iterator[tuple[str, ConstraintSpec]]":
    """The inputs unchanged; warns of the first with a tab, which is a line of a table rather than one column."""
    warned = False
    for number, entry in enumerate(inputs, 1):
        if "\t" in entry[0] and not warned:
            warned = True
            advice = "of a table, give the source column alone"
            text = f"{name}:{number} has a tab, and the whole line is read as one input; {advice}"
            warnings.warn(text, DataWarning, stacklevel=2)
        yield entry


def _is_file(text: str) -> bool:
    """True for a text that is the name of a file; a NUL, or a text too long for a name, is in none."""
    return "\0" not in text and os.path.isfile(text)


def _check_trace_path(path: Path) -> None:
    """Raise for a path that no trace can be written to, before anything is computed."""
    if not path.name.endswith(".safetensors"):
        raise DataError(f"--trace writes a file called NAME.attn.safetensors, got {path.name!r}; name it so")
    io.check_target(path)


def _trace(model: "Predictor", noted: "list[tuple[str, ConstraintSpec]]", beam: int | None, path: Path) -> None:
    """Write the trace of the inputs, and report it."""
    from regard.viewer.io import save

    specs = [entry for entry in noted[:TRACED] if entry[0].strip() and model.fits(entry[0])]
    if not specs:
        raise DataError(
            "--trace has nothing to show: there is no input in which the model knows anything and that is not longer than "
            "what it reads"
        )
    texts = [text for text, _ in specs]
    recorded = model.trace(texts, beam=beam, constraints=[spec for _, spec in specs])
    save(recorded, path)
    more = f" (the first {TRACED} inputs; --file with fewer lines picks others)" if len(noted) > TRACED else ""
    typer.echo(" ".join((f"{path}: traced inputs: {len(specs)}{more}.", *recorded.notes)), err=True)


def _keep_first(
    inputs: "Iterable[tuple[str, ConstraintSpec]]", noted: "list[tuple[str, ConstraintSpec]]"
) -> "Iterator[tuple[str, ConstraintSpec]]":
    """The inputs unchanged; the first are appended to `noted`, and one more to detect further ones."""
    for text in inputs:
        if len(noted) <= TRACED:
            noted.append(text)
        yield text


def _check_alone(text: str | None, file: str | None, out: Path | None) -> None:
    """Raise for inputs and outputs beside a conversation, which is standard input and output."""
    if text is not None or file is not None or out is not None:
        raise ConfigError("--chat answers the lines of standard input on standard output; leave INPUT, --file and --out out")


def _inputs(text: str | None, file: str | None) -> Iterator[str]:
    from regard.data.lines import lines

    if text is not None and file is not None:
        raise DataError("give an INPUT or --file, not both")
    if text is not None:
        return iter([text])
    return (line.text for line in lines(file or "-"))
