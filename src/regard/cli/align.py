"""Word alignment from attention weights: regard align."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from regard import io
from regard.cli import Components, ModelCommand, app
from regard.cli._task_options import with_task_options
from regard.cli.evaluate import figures_to_dict, format_figures
from regard.cli.train import ANY, settings
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.alignment.heads import Candidate, Head
    from regard.alignment.links import Gold, Links
    from regard.alignment.soft import SoftAlignment
    from regard.data.table import Record
    from regard.inference.sequence_predictor import SequencePredictor
    from regard.metrics.text import Measurement

NEEDED = "--data.test=FILE, and --data.source and --data.target for its columns"
COUNTED = "The gold file counts words from 1 (files of sentence, source, target do so anyway)."
SHARED: tuple[str, ...] = (
    "gold",
    "from_one",
    "flip",
    "choose",
    "by",
    "attention",
    "head",
    "shift",
    "threshold",
    "merge",
    "letters",
)
SHARED += ("reverse", "symmetrise", "as_json")
"""Options that are about sentence pairs alone."""
MEANS: dict[str, tuple[str, ...]] = {"by": ("aer", "f1", "accuracy"), "merge": ("weights", "links")}


@app.command(cls=ModelCommand, short_help="Align words by attention weights.", context_settings=ANY)
@with_task_options("align")
def align(
    context: typer.Context,
    directory: Annotated[Path, typer.Argument(help="A directory that `regard train` made.", metavar="DIR")],
    out: Annotated[Path | None, typer.Option(help="Write the links here, a line for each pair: 0-0 1-2.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Gold links, for evaluation.")] = None,
    from_one: Annotated[bool, typer.Option("--from-one", help=COUNTED)] = False,
    flip: Annotated[bool, typer.Option("--flip", help="The gold file writes the target's word first.")] = False,
    choose: Annotated[
        bool, typer.Option("--choose", help="Select the best head by --gold, and store it in the directory.")
    ] = False,
    by: Annotated[str | None, typer.Option(help="Selection metric: aer, f1 or accuracy (default for letters).")] = None,
    attention: Annotated[str | None, typer.Option(help="Which attention, such as decoder.2.cross.")] = None,
    head: Annotated[int | None, typer.Option(min=0, help="Which of its heads, from 0; without it their mean.")] = None,
    shift: Annotated[bool | None, typer.Option("--shift/--no-shift", help="Use the weights one step after a word.")] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, help="Link all positions above this weight, instead of the largest.")
    ] = None,
    merge: Annotated[str, typer.Option(help="Merge subword weights or links into words.")] = "weights",
    letters: Annotated[
        bool, typer.Option("--letters", help="Align tokens instead of words (default for characters).")
    ] = False,
    reverse: Annotated[Path | None, typer.Option(help="A model of the other direction, from target to source.")] = None,
    symmetrise: Annotated[str | None, typer.Option(help="Symmetrisation heuristic, such as intersection.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print metrics as one JSON object.")] = False,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda.")] = "auto",
    component: Components = None,
    task_options: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Align the words of sentence pairs by the attention weights under teacher forcing.

    With INPUT and TEXT it aligns a recording with what is said in it: start, end and confidence of each word.

    With --gold the links are evaluated, with --out they are written; with neither they are printed. --choose evaluates every
    head and stores the best one in the directory, where `predict --align` uses it too. With --reverse two directions are
    symmetrised: intersection, union, grow-diag (as usual), grow-diag-final, grow-diag-final-and.

    \b
    Example:
        regard align run/ --data.test=dev.tsv --gold dev.links --choose
        regard align run/ --data.test=test.tsv --reverse back/ --symmetrise grow-diag-final-and --out test.links
        regard align asr/ call.wav "what is said in it" --times srt
    """
    pair = [argument for argument in context.args if not argument.startswith("--")]
    if pair or task_options:
        _align_pair(directory, device, pair, context, task_options)
        return
    _check_options(out, gold, choose, reverse, symmetrise, by=by, merge=merge)
    _check_gold_options(gold, {"--from-one": from_one, "--flip": flip, "--json": as_json})
    if choose:
        _check_choose_options({"--attention": attention, "--head": head, "--shift": shift, "--threshold": threshold})
    from regard.alignment import score
    from regard.alignment.heads import align_pairs
    from regard.alignment.pharaoh import read_gold
    from regard.alignment.soft import compute_soft_alignments
    from regard.inference.load import load_sequence_predictor
    from regard.inference.sequence_predictor import SequencePredictor

    model = load_sequence_predictor(directory, device)
    if type(model).align_pair is not SequencePredictor.align_pair:
        raise ConfigError(
            f"a model that reads {model.codec.kind} ({model.name}) aligns one recording with what is said in it, and needs "
            'both: regard align DIR call.wav "what is said in it"'
        )
    model.text_codec("regard align")
    records = _records(model, context.args)
    pairs = compute_soft_alignments(model, records, tokens=letters)
    right = None if gold is None else read_gold(str(gold), pairs, first=int(from_one), flip=flip)
    names = (*score.WORDS, *score.LETTERS) if _aligns_tokens(model, letters) else score.WORDS
    by = by or ("aer" if names == score.WORDS else "accuracy")
    candidates = _rank_heads(directory, pairs, right, by, merge) if right is not None and choose else []
    head_used = candidates[0].head if candidates else _head(model, attention, head, shift)
    ways: dict[str, Any] = {"threshold": threshold, "by": merge}
    links = align_pairs(pairs, head_used, **ways)
    if reverse is not None:
        links = _symmetrise(
            links,
            load_sequence_predictor(reverse, device),
            records,
            pairs,
            symmetrise or "grow-diag",
            tokens=letters,
            **ways,
        )
    _write(links, out, printed=right is None)
    if right is not None:
        _show(score.measure(links, right, names), candidates, directory, as_json)


def _align_pair(
    directory: Path, device: str, pair: list[str], context: typer.Context, task_options: Mapping[str, str]
) -> None:
    """Align one input with a text, and print the times of its words."""
    from regard.inference.load import load_sequence_predictor

    options = [argument for argument in context.args if argument.startswith("--")]
    named = {name for name in SHARED if context.params.get(name) not in (None, False, "weights")}
    if len(pair) != 2 or options or named:
        used = f", got {', '.join(options)}" if options else f", got --{min(named)}" if named else ""
        raise ConfigError(
            f"an alignment of one recording takes INPUT and TEXT and no option but --out, --times and --device{used}: "
            'regard align DIR call.wav "what is said in it"'
        )
    out = context.params.get("out")
    if out is not None:
        io.check_target(out)
    model = load_sequence_predictor(directory, device)
    model.set_options(task_options)
    printed = model.align_pair(*pair).printed
    if out is not None:
        io.write(out, f"{printed}\n".encode())
    else:
        typer.echo(printed)


def _check_options(
    out: Path | None, gold: Path | None, choose: bool, reverse: Path | None, symmetrise: str | None, **named: str | None
) -> None:
    """Raise for options that exclude each other, before anything is loaded."""
    from regard.alignment.symmetrise import HEURISTICS

    for name, value in {**named, "symmetrise": symmetrise}.items():
        known = MEANS.get(name, HEURISTICS)
        if value is not None and value not in known:
            raise ConfigError(f"--{name} is one of {', '.join(known)}, got {value!r}")
    if symmetrise is not None and reverse is None:
        raise ConfigError("--symmetrise needs a second model, of the other direction: --reverse DIR")
    if choose and gold is None:
        raise ConfigError("--choose finds the head that agrees best with gold links: --gold FILE")
    if choose and reverse is not None:
        raise ConfigError("--choose is about one model: choose for each of the two directions first, then give --reverse")
    if named["by"] is not None and not choose:
        raise ConfigError("--by says which head is best, and needs --choose")
    if out is not None:
        io.check_target(out)


def _check_gold_options(gold: Path | None, options: dict[str, bool]) -> None:
    """Raise for options of gold links without --gold."""
    for name in [name for name, used in options.items() if used and gold is None]:
        raise ConfigError(f"{name} would change nothing: it is about gold links and the figures they give, --gold FILE")


def _check_choose_options(options: dict[str, object]) -> None:
    """Raise for options that select a head together with --choose."""
    for name in [name for name, value in options.items() if value is not None]:
        raise ConfigError(
            f"--choose tries every head, with and without a shift, by its largest weights, and heeds no {name}; leave it "
            "out, or give it in a second command"
        )


def _records(model: "SequencePredictor", arguments: list[str]) -> "list[Record]":
    from regard.data.table import read

    overrides = dict(setting.split("=", 1) for setting in settings(arguments))
    if unknown := overrides.keys() - {"data.test", "data.source", "data.target"}:
        raise ConfigError(f"align has no setting {sorted(unknown)[0]}; it takes {NEEDED}")
    data = model.config.data
    test = overrides.get("data.test", data.test)
    if test is None:
        raise ConfigError(f"align takes {NEEDED}")
    return list(read(test, overrides.get("data.source", data.source), overrides.get("data.target", data.target)))


def _head(model: "SequencePredictor", attention: str | None, number: int | None, shift: bool | None) -> "Head":
    """The head of the options; by default the one stored in the directory."""
    usual = model.head
    if attention is not None or number is not None:
        usual = usual._replace(attention=attention or usual.attention, head=number)
    return usual if shift is None else usual._replace(shift=shift)


def _rank_heads(directory: Path, pairs: "list[SoftAlignment]", gold: "list[Gold]", by: str, merge: str) -> "list[Candidate]":
    """Rank all heads, and store the best in the directory."""
    from regard.alignment.heads import rank_heads
    from regard.inference import alignment_head

    candidates = rank_heads(pairs, gold, cast(Any, by), merge=cast(Any, merge))
    alignment_head.save_head(directory, candidates[0].head)
    return candidates


def _symmetrise(
    links: "list[Links]",
    other: "SequencePredictor",
    records: "list[Record]",
    pairs: "list[SoftAlignment]",
    how: str,
    **ways: Any,
) -> "list[Links]":
    """Symmetrise the links of both directions."""
    from regard.alignment.symmetrise import reverse_links, symmetrise

    return [symmetrise(*both, how) for both in zip(links, reverse_links(other, records, pairs, **ways), strict=True)]


def _aligns_tokens(model: "SequencePredictor", letters: bool) -> bool:
    """True where single tokens are aligned, for which accuracy is the usual metric."""
    from regard.alignment.words import aligns_tokens

    return any(aligns_tokens(side, letters) for side in (model.codec.source, model.codec.target))


def _write(links: "list[Links]", out: Path | None, printed: bool) -> None:
    from regard.alignment.pharaoh import format_pharaoh

    if out is not None:
        io.write(out, format_pharaoh(links).encode())
    elif printed:
        typer.echo(format_pharaoh(links), nl=False)


def _show(figures: "dict[str, Measurement]", candidates: "list[Candidate]", directory: Path, as_json: bool) -> None:
    """Print the metrics, and those of every candidate head."""
    if as_json:
        table = (
            {"candidates": [candidate.head._asdict() | candidate.metrics for candidate in candidates]} if candidates else {}
        )
        typer.echo(json.dumps(figures_to_dict(dict(figures)) | table, ensure_ascii=False))
        return
    if candidates:
        wide = max(len(str(candidate.head)) for candidate in candidates)
        typer.echo(" ".join([" " * wide, *(f"{name:>10}" for name in figures)]))
        for candidate in candidates:
            typer.echo(" ".join([f"{candidate.head!s:<{wide}}", *(f"{candidate.metrics[name]:10.2f}" for name in figures)]))
        typer.echo(f"\nchosen: {candidates[0].head}, noted in {directory / 'manifest.json'}\n")
    typer.echo(format_figures(dict(figures)))
