import os

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import launch, operator
from regard.kernels.additive_triton.arguments import Tiles


def test_the_keys_of_one_query_are_split_into_whole_tiles():
    device = torch.device("cpu")  # which counts as two processors, and so as eight programs
    assert launch.share(1, 128, 16, device) == 16
    assert launch.share(1, 1000, 16, device) == 128
    assert launch.share(100, 1000, 16, device) == 1008


@pytest.mark.parametrize(
    ("width", "dtype", "kib"),
    [
        (32, torch.float32, 8),
        (128, torch.float32, 20),
        (512, torch.float32, 68),
        (128, torch.float16, 10),
        (512, torch.float16, 34),
    ],
)
def test_what_a_pass_needs_is_what_triton_compiled_it_to(width, dtype, kib):
    """In KiB, by Triton 3.6 for sm_80."""
    assert launch.need(width, torch.empty(1, dtype=dtype), Tiles()) == kib << 10


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="runs in the interpreter")
def test_where_room_is_short_a_program_sums_fewer_dimensions_of_the_value(monkeypatch):
    started = []

    def largest(start, widths, need, device, kind):
        started.append((widths, [need(width) for width in widths]))
        start(widths[-1])

    query, key, value, v = torch.randn(1, 1, 3, 4), torch.randn(1, 1, 5, 4), torch.randn(1, 1, 5, 40), torch.randn(1, 4)
    expected, _ = operator.attention(query, key, value, v)
    monkeypatch.setattr(launch, "largest", largest)
    torch.testing.assert_close(operator.attention(query, key, value, v)[0], expected)
    assert started == [([64, 32, 16], [launch.need(width, value, operator.TILES) for width in (64, 32, 16)])]
