import pytest

from regard.decoding.engines.cpp.convolution import Engine, covers

from ..eager.test_convolution import OPTIONS, built
from ..eager.walked import near, walked

KINDS = {name: options for name, options in OPTIONS.items() if options.get("join") != "concat"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attention", ["bilinear", "transformer", "additive"])
@pytest.mark.parametrize("size", [8, 20])
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention, size):
    walked(Engine, built(attention, **{"hidden_size": size} | KINDS[kind]))


def test_int8_is_near():
    near(Engine, built(hidden_size=64))


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("bilinear", {"decoder": "recurrent"}, "needs the convolutional decoder, got Recurrent"),
        ("bilinear", {"join": "concat"}, "needs positions that are added, got concat"),
        ("none", {}, "needs an attention to the source"),
        ("additive+sparsemax", {}, "needs Softmax and Everywhere, got Sparsemax"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
