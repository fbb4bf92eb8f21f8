import pytest
import torch

from regard.attention.positions.sinusoidal import Sinusoidal
from regard.data.batch import pad
from regard.decoding.engines.cpp.lstm_encoder import Engine, build_direction, covers
from regard.models.encoders.recurrent import Recurrent

OPTIONS = {
    "both ways": {},
    "one way": {"bidirectional": False},
    "three layers": {"layers": 3, "embedding": 5},
    "lanes and more": {"size": 38, "layers": 2},
    "with positions": {"positions": Sinusoidal(8), "embedding": 8},
}
SOURCES = {
    "padded": pad([[4, 5], [7, 3, 4, 8, 9, 2], [8, 9, 2], [5]]),
    "full": pad([[4, 5, 2], [6, 7, 2]]),
    "alone": pad([[4, 5, 6, 7, 2]]),
}


def built(**options):
    torch.manual_seed(2)
    return Recurrent(11, **{"size": 12} | options).eval()


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("source", SOURCES)
@torch.no_grad()
def test_it_finds_what_the_encoder_finds_and_its_last_states(kind, source):
    encoder = built(**OPTIONS[kind])
    found, right = Engine(encoder)(SOURCES[source]), encoder(SOURCES[source])
    torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_several_threads_find_the_same(two_threads):
    encoder = built(size=128, layers=2)
    source = pad([[4 + (place * row) % 7 for place in range(20 - row)] for row in range(16)])
    torch.testing.assert_close(Engine(encoder)(source), encoder(source), atol=1e-5, rtol=1e-5)


def test_a_way_has_the_parameters_of_its_direction():
    made = built().layers[0]
    there, back = build_direction(made, back=False), build_direction(made, back=True)
    assert there.references[0].references[1][:3].tolist() == pytest.approx((made.bias_ih_l0 + made.bias_hh_l0)[:3].tolist())
    assert back.references[0].references[1][:3].tolist() == pytest.approx(
        (made.bias_ih_l0_reverse + made.bias_hh_l0_reverse)[:3].tolist()
    )
    assert (there.entering.size, there.staying.size, there.staying.out) == (12, 6, 24)


@pytest.mark.parametrize(
    ("encoder", "reason"),
    [
        (torch.nn.Identity(), "needs the recurrent encoder, got Identity"),
        (built(cell="gru"), "needs LSTM cells, got GRU"),
        (built(reverse=True), "needs a source that is not reversed"),
        (built().double(), "needs weights in float32, got torch.float64"),
        (built(positions=Sinusoidal(4, join="concat")), "needs positions that are added, got concat"),
    ],
)
def test_what_it_does_not_cover_it_says(encoder, reason):
    assert covers(encoder) == reason
