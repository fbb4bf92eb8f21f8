"""A faithfulness check in a trace: round trip, and what is refused."""

import dataclasses

import numpy as np
import pytest

from regard.viewer.html.payload import payload
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Faithfulness, Trace

CHECK = Faithfulness("tokens", (0, 2), 0.5, 0.25, 0.125, 20)


def trace(**changes):
    plain = Trace.from_arrays(np.full((1, 3, 3), 1 / 3), query=["a", "b", "c"])
    check = dataclasses.replace(CHECK, **changes)
    return dataclasses.replace(plain, examples=(dataclasses.replace(plain.example(), faithfulness=check),))


def test_a_check_is_in_the_file_and_in_the_page(tmp_path):
    path = trace().save(tmp_path / "t.attn.safetensors")
    assert Trace.load(path).example().faithfulness == CHECK
    assert payload is not None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"axis": "source"}, "faithfulness: its axis is 'source', and the example has the axes tokens"),
        ({"keys": (0, 3)}, r"faithfulness: its keys are places of 'tokens', 0 to 2, got \(0, 3\)"),
        ({"keys": ()}, "faithfulness: its keys are places of 'tokens'"),
        ({"measure": "length"}, "faithfulness: the measure is one of probability, state, got 'length'"),
        ({"random": float("nan")}, "faithfulness: random is a change, a number of 0 or more, got nan"),
        ({"largest": -0.1}, "faithfulness: largest is a change"),
        ({"trials": 0}, "faithfulness: it needs a trial or more, got 0"),
    ],
)
def test_a_check_that_does_not_fit_is_refused(changes, text, tmp_path):
    with pytest.raises(TraceError, match=text):
        trace(**changes).save(tmp_path / "t.attn.safetensors")
