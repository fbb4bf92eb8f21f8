"""Predictor of parsers, whose answers may be kept to a grammar or to the targets of the training."""

import json
from functools import cached_property

from regard.decoding.constraints.language import Language, PrefixTree
from regard.errors import DamagedError, DataError
from regard.inference.sequence_predictor import SequencePredictor

TARGETS = "targets.json"
"""File of a run directory with the targets of the training, constants left open."""


class ParsePredictor(SequencePredictor):
    """Model that writes queries."""

    tree: PrefixTree | None = None
    """Prefix tree of the training's targets, where it is known before the run directory."""

    @cached_property
    def language(self) -> Language:
        """Language that answers are written in: search.grammar."""
        if self.config.search.grammar != "targets":
            return super().language
        if self.tree is not None:
            return self.tree
        path = None if self.home is None else self.home / TARGETS
        if path is None or not path.is_file():
            raise DataError(f"search.grammar=targets needs the file {TARGETS} of a run directory, which is not there")
        return load_tree(path.read_bytes(), str(path))

    @property
    def constants(self) -> frozenset[int]:
        """Tokens that were constants in the training, where the run directory tells."""
        path = None if self.home is None else self.home / TARGETS
        if path is None or not path.is_file():
            return super().constants
        return load_tree(path.read_bytes(), str(path)).constants


def load_tree(content: bytes, where: str) -> PrefixTree:
    """Prefix tree of a file of targets."""
    try:
        table = json.loads(content)
        targets, constants = table["targets"], table["constants"]
        tokens = [token for target in targets for token in target]
        if not all(isinstance(token, int) for token in (*tokens, *constants)):
            raise TypeError("tokens are numbers")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedError(f"{where} needs to be the targets of a training, as JSON, and is not: {error}") from error
    return PrefixTree(targets, constants)
