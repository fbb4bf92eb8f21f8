import pytest
import torch

from regard import registry
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Encoded, Memory, Normaliser, Request, Score


def request(scope=Everywhere(), offset=0) -> Request:
    data = torch.zeros(2, 3, 4, 5)
    return Request(data, data[:, :, :3], data[:, :, :3], ScaledDot(), Softmax(), scope, 0.0, offset, False, ())


@pytest.mark.parametrize("name", registry.names("score"))
def test_every_score_has_the_face_of_a_score(name):
    assert isinstance(registry.build(name, "score", query=2, key=2), Score)


@pytest.mark.parametrize("name", registry.names("normalise"))
def test_every_normaliser_has_the_face_of_a_normaliser(name):
    assert isinstance(registry.build(name, "normalise"), Normaliser)


def test_a_normaliser_is_no_score_and_a_score_no_normaliser():
    assert not isinstance(Softmax(), Score)
    assert not isinstance(ScaledDot(), Normaliser)


def test_a_request_knows_its_mask():
    assert request().allowed is None
    assert request(Causal()).allowed[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]
    assert request(Causal(), offset=1).allowed[0, 0].int().tolist() == [[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 1]]


def test_a_request_knows_its_device():
    assert request().device == "cpu"


def test_what_was_not_asked_for_is_not_there():
    attended = Attended(torch.zeros(1))
    assert attended.weights is None
    assert attended.sampled is None
    assert attended.state == ()
    assert dict(attended.statistics) == {}


def test_nobody_can_write_into_the_statistics_that_all_share():
    with pytest.raises(TypeError):
        Attended(torch.zeros(1)).statistics["entropy"] = torch.zeros(1)


def test_a_source_is_kept_everywhere_unless_told():
    data = torch.zeros(1, 1, 2, 3)
    assert Memory(data, data).keep is None
    assert Encoded(data[0]).keep is None
    assert Encoded(data[0]).final == ()


def test_a_source_is_no_map_unless_told():
    data = torch.zeros(1, 1, 6, 3)
    assert Memory(data, data).grid is None
    assert Encoded(data[0]).grid is None
