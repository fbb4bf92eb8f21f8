"""Links of the training data, which guide an attention: read beside the records, and expanded to their tokens."""

from collections.abc import Sequence
from itertools import compress

from regard.alignment import pharaoh, words
from regard.alignment.links import check_links
from regard.config import Data
from regard.data.records import Record
from regard.data.text.codec import TextCodec


def attach_links(
    records: Sequence[Record], data: Data, codec: TextCodec, kept_lines: Sequence[bool] | None = None
) -> list[Record]:
    """Attach the links of data.alignments to the records, line by line, expanded to tokens; possible ones are left out.

    `kept_lines` is True for each line that is among the records; None: all are.
    """
    path, tokens = data.alignments or "", data.alignment_unit == "tokens"
    kept_lines = [True] * len(records) if kept_lines is None else kept_lines
    lines = compress(enumerate(pharaoh.read_links(path, sentences=len(kept_lines)), start=1), kept_lines)
    linked = []
    for record, (number, gold) in zip(records, lines, strict=True):
        source, target = words.source_units(codec, record, tokens), words.target_units(codec, record, tokens)
        check_links(gold.sure, len(source.texts), len(target.texts), f"{path}:{number}")
        linked.append(record._replace(links=tuple(sorted(words.expand_links(gold.sure, source, target)))))
    return linked
