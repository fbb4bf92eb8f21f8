"""Pharaoh files, with a line of links for each pair, and two other formats of gold links.

    0-0 1-2 2p1             source-target, from 0; a p instead of the hyphen: possible, not sure
    1-1 2-3 TAB 3-2         sure links, a tab, possible ones
    18 1 1                  sentence, source, target (and S or P), one link a line, always counted from 1

Whether the first two count from 0 or from 1 cannot be seen, so `first` says it. The third is that of the shared task of
2003 (Mihalcea and Pedersen, https://aclanthology.org/W03-0301).
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, compress

from regard.alignment import words
from regard.alignment.links import Gold, Link, Links, check_links, transpose
from regard.alignment.soft import SoftAlignment
from regard.config import Data, quoted
from regard.data.lines import Line, lines
from regard.data.records import Record
from regard.data.text.codec import TextCodec
from regard.errors import DataError

LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})")
KEY = re.compile(r"\s*(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SP]))?\s*")


def read_links(path: str, *, first: int = 0, sentences: int | None = None) -> list[Gold]:
    """The links of each pair, in any of the three formats. `sentences` is the number of pairs required."""
    rows = list(lines(path))
    first_line = next((line for line in rows if line.text.strip()), rows[0])
    if KEY.fullmatch(first_line.text):
        return _parse_triples(path, rows, sentences)
    if sentences is not None and len(rows) != sentences:
        raise DataError(
            f"{path} has {len(rows)} lines of links for {sentences} pairs; it needs one line for each pair, empty where "
            "nothing is linked"
        )
    return [_parse_line(line, first) for line in rows]


def format_links(links: Iterable[Link]) -> str:
    """Links as a line of a Pharaoh file, in the order of the source."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def format_pharaoh(alignments: Sequence[Links]) -> str:
    """A Pharaoh file: a line for each pair."""
    return "".join(f"{format_links(links)}\n" for links in alignments)


def _parse_line(line: Line, first: int) -> Gold:
    sure, _, possible = line.text.partition("\t")
    if "\t" in possible:
        raise DataError(f"{line.where} has more than one tab; a line is sure links, or sure links, a tab and possible ones")
    before, after = _parse_links(sure, line.where, first), _parse_links(possible, line.where, first)
    return Gold(frozenset(before["-"]), frozenset(chain(before["p"], after["-"], after["p"])))


def _parse_links(text: str, where: str, first: int) -> dict[str, list[Link]]:
    links: dict[str, list[Link]] = {"-": [], "p": []}
    for word in text.split():
        link = LINK.fullmatch(word)
        if link is None:
            raise DataError(
                f"{where} has {quoted(word)} where a link is needed: SOURCE-TARGET, or SOURCEpTARGET where it is possible"
            )
        links[link[2]].append(_parse_link(link[1], link[3], where, first))
    return links


def _parse_link(source: str, target: str, where: str, first: int) -> Link:
    link = int(source) - first, int(target) - first
    if min(link) < 0:
        raise DataError(f"{where} links {source} and {target}, and words are counted from {first} here")
    return link


def _parse_triples(path: str, rows: list[Line], sentences: int | None) -> list[Gold]:
    sure, possible = dict[int, set[Link]](), dict[int, set[Link]]()
    for line in rows:
        key = KEY.fullmatch(line.text)
        if key is None:
            raise DataError(
                f"{line.where} needs a sentence, a source word and a target word, as numbers from 1, got {quoted(line.text)}"
            )
        number = int(key[1])
        if number < 1 or (sentences is not None and number > sentences):
            most = "" if sentences is None else f" to {sentences}"
            raise DataError(f"{line.where} is about sentence {number}, and sentences are counted from 1{most}")
        (possible if key[4] == "P" else sure).setdefault(number, set()).add(_parse_link(key[2], key[3], line.where, 1))
    last = max(*sure, *possible, 0) if sentences is None else sentences
    return [Gold(frozenset(sure.get(n, ())), frozenset(possible.get(n, ()))) for n in range(1, last + 1)]


def read_gold(path: str, pairs: Sequence[SoftAlignment], *, first: int = 0, flip: bool = False) -> list[Gold]:
    """The gold links of a file, checked against the pairs; `flip` if the file writes the target's word first."""
    golds = read_links(path, first=first, sentences=len(pairs))
    if flip:
        golds = [Gold(transpose(gold.sure), transpose(gold.possible)) for gold in golds]
    for number, (pair, gold) in enumerate(zip(pairs, golds, strict=True), start=1):
        check_links((*gold.sure, *gold.possible), len(pair.source.texts), len(pair.target.texts), f"{path}, pair {number},")
    if not any(gold.sure for gold in golds):
        raise DataError(f"{path} has no sure link, and nothing can be measured without one")
    return golds


def attach_links(
    records: Sequence[Record], data: Data, codec: TextCodec, kept_lines: Sequence[bool] | None = None
) -> list[Record]:
    """Attach the links of data.alignments to the records, line by line, expanded to tokens; possible ones are left out.

    `kept_lines` is True for each line that is among the records; None: all are.
    """
    path, tokens = data.alignments or "", data.alignment_unit == "tokens"
    kept_lines = [True] * len(records) if kept_lines is None else kept_lines
    lines = compress(enumerate(read_links(path, sentences=len(kept_lines)), start=1), kept_lines)
    linked = []
    for record, (number, gold) in zip(records, lines, strict=True):
        source, target = words.source_units(codec, record, tokens), words.target_units(codec, record, tokens)
        check_links(gold.sure, len(source.texts), len(target.texts), f"{path}:{number}")
        linked.append(record._replace(links=tuple(sorted(words.expand_links(gold.sure, source, target)))))
    return linked
