"""Constraints of one answer as text: prefix, required phrases, forbidden phrases."""

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from regard.config import quoted
from regard.data.lines import Line
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.decoding.constraints.language import Language
from regard.decoding.constraints.phrases import UNREACHABLE, build_automaton, count_tokens_left
from regard.decoding.constraints.prefix import Prefix
from regard.decoding.constraints.spelling import Letters, Spelling
from regard.decoding.constraints.state import Constraints, Guard
from regard.errors import DataError

EXAMPLE = '{"prefix": "Tom", "include": ["a phrase"], "exclude": ["a phrase"]}'

Phrases = Sequence[str] | Sequence[Sequence[str]]
"""Phrases for all texts, or a list for each."""


class ConstraintSpec(NamedTuple):
    """Constraints of one answer. With subword tokens, a phrase may match inside a longer word."""

    prefix: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def expand_specs(
    count: int, prefix: str | Sequence[str] | None, include: Phrases | None, exclude: Phrases | None
) -> list[ConstraintSpec]:
    """Constraints for each of so many texts, from one value for all or one for each."""
    prefixes = [prefix or ""] * count if prefix is None or isinstance(prefix, str) else [text or "" for text in prefix]
    includes, excludes = _expand_phrases("include", count, include), _expand_phrases("exclude", count, exclude)
    if len(prefixes) != count:
        raise ValueError(f"prefix needs one text, or one for each of {count} texts, got {len(prefixes)}")
    return [ConstraintSpec(*arguments) for arguments in zip(prefixes, includes, excludes, strict=True)]


def parse_spec(line: Line) -> ConstraintSpec:
    """Parse constraints from a line of JSON; a missing key means none."""
    try:
        table = json.loads(line.text) if line.text.strip() else {}
    except (ValueError, RecursionError) as error:
        fault = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep, or a number of too many digits"
        raise DataError(f"{line.where} is not JSON ({fault}); constraints look like {EXAMPLE}") from error
    if not isinstance(table, dict) or (strange := sorted(table.keys() - set(ConstraintSpec._fields))):
        got = type(table).__name__ if not isinstance(table, dict) else quoted(strange[0])
        raise DataError(f"{line.where} needs an object with prefix, include and exclude, got {got}: {EXAMPLE}")
    if not isinstance(table.get("prefix", ""), str):
        raise DataError(f"{line.where} needs a prefix that is a text, got {quoted(table['prefix'])}: {EXAMPLE}")
    phrases = [table.get(name, []) for name in ("include", "exclude")]
    if wrong := [phrase for phrase in phrases if not _is_text_list(phrase)]:
        raise DataError(f"{line.where} needs lists of texts to include and to exclude, got {quoted(wrong[0])}: {EXAMPLE}")
    return ConstraintSpec(table.get("prefix", ""), *map(tuple, phrases))


def build_guard(
    specs: Sequence[ConstraintSpec],
    spelling: Spelling,
    target: Callable[[str], str],
    block: int,
    device: torch.device | str,
    forced_bos: int | None = None,
    language: Language | None = None,
) -> Guard | None:
    """Build the constraints of a batch, with n-gram blocking of `block` tokens; None where nothing is constrained.

    `target` applies the target side's text preprocessing. A prefix comes behind a forced BOS that writes nothing. All
    answers are in the `language`, where there is one.
    """
    if not block and language is None and not any(map(any, specs)):
        return None
    prefixes = {spec.prefix: _build_prefix(spec.prefix, spelling, target) for spec in specs}
    if forced_bos is not None and forced_bos < len(spelling.letters) and spelling.is_silent(forced_bos):
        prefixes = {text: prefix.behind(forced_bos) if text else prefix for text, prefix in prefixes.items()}
    constraints = [
        Constraints(
            prefixes[spec.prefix],
            tuple(_spell_required(phrase, spelling, target) for phrase in spec.include),
            tuple(spelt for phrase in spec.exclude if (spelt := _spell_phrase(phrase, spelling, target)) is not None),
        )
        for spec in specs
    ]
    return Guard(constraints, spelling, block, device, language)


def _expand_phrases(name: str, count: int, phrases: Phrases | None) -> list[tuple[str, ...]]:
    if isinstance(phrases, str):
        raise ValueError(f"{name} needs a list of phrases, got the text {phrases!r}; one phrase is [{phrases!r}]")
    if phrases is None or all(isinstance(phrase, str) for phrase in phrases):
        return [tuple(str(phrase) for phrase in phrases or ())] * count
    if len(phrases) != count:
        raise ValueError(f"{name} needs a list of phrases, or one list for each of {count} texts, got {len(phrases)}")
    if wrong := [phrase for phrase in phrases if not _is_text_list(phrase)]:
        raise ValueError(f"{name} needs lists of phrases throughout, got {wrong[0]!r} among them")
    return [tuple(phrase) for phrase in phrases]


def _is_text_list(phrases: Any) -> bool:
    return isinstance(phrases, (list, tuple)) and all(isinstance(phrase, str) for phrase in phrases)


def _build_prefix(text: str, spelling: Spelling, target: Callable[[str], str]) -> Prefix:
    assert spelling.tokenizer is not None, "words are read by a tokenizer"
    return Prefix.of(target(text), spelling.tokenizer) if text else Prefix()


def _spell_required(phrase: str, spelling: Spelling, target: Callable[[str], str]) -> Letters:
    spelt = _spell_phrase(phrase, spelling, target)
    if spelt is None or (isinstance(spelling.tokenizer, Pretrained) and not _is_writable(spelt, spelling)):
        raise ValueError(f"the model cannot write the phrase {phrase!r}; include words that it has learnt")
    return spelt


def _is_writable(spelt: Letters, spelling: Spelling) -> bool:
    """Return True if some tokens write a phrase; a vocabulary from elsewhere may lack some of its bytes."""
    return int(count_tokens_left(build_automaton(spelt, spelling))[0]) < UNREACHABLE


def _spell_phrase(phrase: str, spelling: Spelling, target: Callable[[str], str]) -> Letters | None:
    spelt = spelling.spell(target(phrase))
    if spelt == ():
        raise ValueError(f"a phrase needs a word to look for, got {phrase!r}; leave it out")
    return spelt
