"""Ask a trained model: regard predict."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from regard.cli import Command, app
from regard.cli.searching import apart, search_by, wished
from regard.cli.train import ANY
from regard.data.lines import DataError

if TYPE_CHECKING:
    from regard.decoding.wishes import Wish
    from regard.trained import Prediction, Trained

Each = TypeVar("Each")

TRACED = 32
"""How many inputs a trace shows at most: more than anybody looks through, and few enough to open at once."""
WINDOW = 1024
"""Lines that are sorted by length and answered together; a person who types is answered line by line."""


@app.command(cls=Command, short_help="Ask a trained model.", context_settings=ANY)
def predict(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train` made.", metavar="DIR")],
    text: Annotated[
        str | None, typer.Argument(help="What to ask; without it, --file or standard input.", metavar="INPUT")
    ] = None,
    file: Annotated[str | None, typer.Option(help="A file with one input on each line.")] = None,
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
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
) -> None:
    """Answer one input, or every line of a file or of standard input.

    With --nbest the score stands before each answer, and an empty line between inputs. Any setting of the search is an
    option by its dotted path: --search.groups=4 --search.risk=chrf.

    \b
    Example:
        echo "Tom chases Jerry" | regard predict run/ --beam 5 --nbest 3 --align
        regard predict run/ --file source.txt --out answers.txt
        regard predict run/ "Tom chases Jerry" --trace tom.attn.safetensors
        regard predict run/ "Tom chases Jerry" --prefix 汤姆 --exclude 喜欢 --search.block_ngrams=3
    """
    from regard.trained import load

    text, settings = apart(text, context.args, "predict")
    if trace is not None:
        _writable(trace)
    asked = wished(_inputs(text, file), prefix, include or [], exclude or [], constraints)
    model = load(directory, device)
    search_by(model, settings, beam)
    noted: list[tuple[str, Wish]] = []
    typed = text is None and file in (None, "-") and sys.stdin is not None and sys.stdin.isatty()
    window = 1 if typed else WINDOW
    if out is None:
        strange = _answer(model, _noting(asked, noted), sys.stdout, window, beam, nbest, align, unknown, as_json)
    else:
        partial = out.with_name(f"{out.name}.partial")  # nothing half-written takes the place of what was there
        with partial.open("w", encoding="utf-8") as stream:
            strange = _answer(model, _noting(asked, noted), stream, window, beam, nbest, align, unknown, as_json)
        partial.replace(out)
    if trace is not None:
        _trace(model, noted, beam, trace)
    if strange:
        raise DataError(
            f"{file or 'input'}:{strange[0]} has nothing in it that the model knows ({len(strange)} such in all): an answer "
            "would be a guess, so it was left empty; everything else is answered"
        )


def _writable(path: Path) -> None:
    """Refuse a name that no trace can be written to, before anything is computed."""
    if not path.name.endswith(".safetensors"):
        raise DataError(f"--trace writes a file called NAME.attn.safetensors, got {path.name!r}; name it so")
    if not path.parent.is_dir():
        raise DataError(f"--trace cannot write {path}: there is no directory {path.parent}; make it first")


def _trace(model: "Trained", noted: "list[tuple[str, Wish]]", beam: int | None, path: Path) -> None:
    """Write the trace of what was asked, and say what it took."""
    from regard.viewer.file import save

    asked = [each for each in noted[:TRACED] if each[0].strip() and model.knows(each[0])]
    if not asked:
        raise DataError("--trace has nothing to show: there is no input in which the model knows anything")
    found = model.trace([text for text, _ in asked], beam=beam, asked=[wish for _, wish in asked])
    save(found, path)
    more = f" (the first {TRACED} inputs; --file with fewer lines picks others)" if len(noted) > TRACED else ""
    typer.echo(f"{path}: {len(asked)} traced{more}. {' '.join(found.notes)}", err=True)


def _noting(inputs: "Iterable[tuple[str, Wish]]", noted: "list[tuple[str, Wish]]") -> "Iterator[tuple[str, Wish]]":
    """The same inputs, of which the first are noted down, and one more to know that there were more."""
    for each in inputs:
        if len(noted) <= TRACED:
            noted.append(each)
        yield each


def _answer(
    model: "Trained",
    inputs: "Iterable[tuple[str, Wish]]",
    stream: IO[str],
    size: int,
    beam: int | None,
    nbest: int,
    align: bool,
    unknown: str | None,
    as_json: bool,
) -> list[int]:
    """Write an answer to each input; the numbers of those, from 1, in which the model knows nothing."""
    strange, place = list[int](), 0
    for window in _windows(inputs, size):
        known = [bool(text.strip()) and model.knows(text) for text, _ in window]
        asked = [each for each, fine in zip(window, known, strict=True) if fine]
        found = iter(_ask(model, asked, beam=beam, best=nbest, align=align, unknown=unknown))
        for (text, _), fine in zip(window, known, strict=True):
            place += 1
            strange += [place] * (not fine and bool(text.strip()))
            answers = next(found) if fine else []
            stream.write(_json(text, answers) if as_json else _plain(answers, nbest, align))
        stream.flush()
    return strange


def _ask(model: "Trained", asked: "list[tuple[str, Wish]]", **options: Any) -> "list[list[Prediction]]":
    """The answers to inputs; one that cannot be had as it is wished is the user's to mend."""
    wishes = [wish for _, wish in asked]
    try:
        return model.predict(
            [text for text, _ in asked],
            prefix=[wish.prefix for wish in wishes],
            include=[wish.include for wish in wishes],
            exclude=[wish.exclude for wish in wishes],
            **options,
        )
    except ValueError as error:
        if not any(map(any, wishes)):
            raise
        raise DataError(str(error)) from error


def _inputs(text: str | None, file: str | None) -> Iterator[str]:
    from regard.data.lines import lines

    if text is not None and file is not None:
        raise DataError("give an INPUT or --file, not both")
    if text is not None:
        return iter([text])
    return (line.text for line in lines(file or "-"))


def _windows(inputs: Iterable[Each], size: int) -> Iterator[list[Each]]:
    """So many inputs at a time; those before one that cannot be read are answered first."""
    window: list[Each] = []
    try:
        for each in inputs:
            window.append(each)
            if len(window) == size:
                yield window
                window = []
    except DataError:
        if window:
            yield window
        raise
    if window:
        yield window


def _plain(answers: "list[Prediction]", nbest: int, align: bool) -> str:
    if not answers:
        return "\n"
    lines = []
    for answer in answers:
        lines.append(f"{answer.score:.4f}\t{answer.text}" if nbest > 1 else answer.text)
        if align and answer.weights is None:
            lines.append("(this model has no attention over its source, so there is nothing to show)")
        elif align and answer.weights is not None:
            from regard.show.heat import heat

            lines += ["", heat(answer.weights, answer.target, answer.source), ""]
    return "\n".join(lines) + ("\n\n" if nbest > 1 else "\n")


def _json(text: str, answers: "list[Prediction]") -> str:
    table = [
        {"text": each.text, "score": each.score}
        | ({} if each.links is None else {"source": each.source, "target": each.target, "links": each.links})
        for each in answers
    ]
    return json.dumps({"input": text, "answers": table}, ensure_ascii=False) + "\n"
