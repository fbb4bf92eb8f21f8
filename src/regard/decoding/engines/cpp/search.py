"""Search of one batch in C++, in one call or step by step."""

import ctypes
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from regard.decoding.engines.cpp.embedding import NativeEmbedding
from regard.decoding.engines.cpp.matrices import find_address
from regard.decoding.engines.types import Numbers
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import no_distribution_error, no_token_error

COMPLETED, UNDISTRIBUTED, STUCK, LOST = range(4)
"""Status of a search, as in search.cpp."""
FIRST_POSITIONS = 64
"""Number of positions computed at first, where the length is not known."""


class Targets(ctypes.Structure):
    """Output buffers as a C struct."""

    _fields_ = (
        ("best", ctypes.c_int64),
        ("room", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("tokens", "logprobs", "lengths", "scores", "normalised", "finished")),
    )


class TargetArrays(NamedTuple):
    """Output buffers as arrays: `best` hypotheses of each sentence."""

    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    lengths: NDArray[np.int64]
    scores: NDArray[np.float64]
    normalised: NDArray[np.float64]
    finished: NDArray[np.bool_]

    def of(self, sentence: int) -> list[Hypothesis]:
        """Hypotheses of one sentence, best first."""
        hypotheses = []
        for number, length in enumerate(self.lengths[sentence].tolist()):
            if length:
                at = sentence, number
                tokens, logprobs = (tensor[at][:length].tolist() for tensor in (self.tokens, self.logprobs))
                worth = float(self.scores[at]), float(self.normalised[at])
                hypotheses.append(Hypothesis(tokens, *worth, logprobs, bool(self.finished[at])))
        return hypotheses


def allocate_targets(sentences: int, best: int, room: int) -> TargetArrays:
    """Allocate output buffers."""
    shape, token_shape = (sentences, best), (sentences, best, room)
    return TargetArrays(
        np.empty(token_shape, np.int64),
        np.empty(token_shape, np.float32),
        np.zeros(shape, np.int64),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape, np.bool_),
    )


class NativeSteps:
    """Decoder state of one batch: `handle` is the C++ object, and `references` keeps alive the data that it points at."""

    def __init__(self, code: ctypes.CDLL, handle: int, spoken: NativeEmbedding, vocabulary: int, references: Any):
        self.code, self.handle, self.references, self.vocabulary = code, handle, references, vocabulary
        self.spoken, self.place = spoken, 0
        finalize(self, code.regard_end, handle)

    def search(self, most: Numbers, beams: int, best: int, length_penalty: float) -> list[list[Hypothesis]]:
        """Search: the `best` hypotheses of each sentence; equals `engines.eager.beam`."""
        longest = int(most.max())
        self.spoken.reach(longest)
        written, length = allocate_targets(len(most), best, longest), ctypes.c_int64()
        targets = Targets(best, longest, *(array.ctypes.data for array in written))
        last = ctypes.byref(targets), ctypes.byref(length), torch.get_num_threads()
        if beams == 1:
            went = self.code.regard_greedy(self.handle, most.ctypes.data, length_penalty, *last)
        else:
            went = self.code.regard_beam(self.handle, most.ctypes.data, beams, length_penalty, *last)
        if went == UNDISTRIBUTED:
            raise no_distribution_error()
        if went == STUCK:
            raise no_token_error(length.value)
        if went == LOST:
            self.spoken.check(length.value - 1)
        return [written.of(sentence) for sentence in range(len(most))]

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences."""
        self.code.regard_leave(self.handle, staying.data_ptr(), len(staying))

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None) -> Float[Tensor, "rows vocabulary"]:
        """Decoding step: one token for each row in, logits out."""
        self.spoken.reach(FIRST_POSITIONS if self.place < FIRST_POSITIONS else 2 * self.place)
        self.spoken.check(self.place)
        self.place += 1
        logits, rows = torch.empty(len(tokens), self.vocabulary), len(tokens)
        arguments = self.handle, tokens.data_ptr(), find_address(parents), rows
        self.code.regard_step(*arguments, logits.data_ptr(), torch.get_num_threads())
        return logits
