import math
from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from regard.attention.mechanisms.gmm import Gmm, invert_softplus

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind


def silent(**options):
    """A mixture that its query does not change."""
    attention = Gmm(1, **options)
    attention.score.V.weight.data.zero_()
    return attention


def test_a_plain_case_can_be_worked_by_hand():
    attention = silent(components=1, initial_move=2.0, initial_width=1.0)
    query, source = torch.zeros(1, 2, 1), torch.tensor([[[0.0], [1.0], [2.0], [3.0], [4.0]]])
    attended = attention(query, attention.remember(source), weights=True)
    # the means are 2 and 4, and the normal density at the distances 0, 1, 2, 3, 4 is .3989 .2420 .0540 .0044 .0001
    expected = torch.tensor([[0.0540, 0.2420, 0.3989, 0.2420, 0.0540], [0.0001, 0.0044, 0.0540, 0.2420, 0.3989]])
    assert_close(attended.weights[0, 0], expected, atol=5e-5, rtol=0)
    assert_close(attended.state, torch.tensor([[4.0]]))
    # 0.2420 + 2 (0.3989) + 3 (0.2420) + 4 (0.0540) = 1.9818
    assert_close(attended.context[0, 0, 0], torch.tensor(1.9818), atol=5e-4, rtol=0)


def test_at_first_every_version_moves_and_reads_as_it_is_told():
    for version in (0, 1, 2):
        mixture = silent(version=version, initial_move=0.5, initial_width=3.0).score.predict(torch.zeros(1, 1, 1, 1))
        assert_close(mixture.move, torch.full((1, 1, 1, 5), 0.5))
        assert_close(mixture.width, torch.full((1, 1, 1, 5), 3.0))


def formula(attention, query, keys):
    """The equations of the papers, one number at a time."""
    score, means, rows = attention.score, [0.0] * attention.score.components, []
    for state in query:
        hats = score.V(torch.tanh(score.W(state))).view(3, -1) + score.biases
        rows.append([0.0] * keys)
        omega = hats[0].softmax(0)
        for k, (w, d, s) in enumerate(hats.T.tolist()):
            if score.version == 0:
                factor, move, variance = math.exp(w), math.exp(d), math.exp(-s) / 2
            elif score.version == 1:
                move, variance = math.exp(d), math.exp(s)
                factor = omega[k].item() / math.sqrt(2 * math.pi * variance)
            else:
                move, variance = math.log1p(math.exp(d)), (math.log1p(math.exp(s)) + 0.01) ** 2
                factor = omega[k].item() / math.sqrt(2 * math.pi * variance)
            means[k] += move
            for j in range(keys):
                rows[-1][j] += factor * math.exp(-((j - means[k]) ** 2) / (2 * variance))
    return torch.tensor(rows)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_it_is_the_formula_of_the_papers(version):
    attention = Gmm(3, 2, version=version, hidden=4, initial_width=2.0)
    query, source = torch.randn(1, 4, 3), torch.randn(1, 5, 2)
    attended = attention(query, attention.remember(source), weights=True)
    weights = formula(attention, query[0], 5)
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])


def test_means_only_move_forward_and_no_key_is_compared():
    attention = Gmm(3, initial_width=1.0)
    query, source = torch.randn(2, 6, 3), torch.randn(2, 9, 3)
    states = [attention(query[:, : count + 1], attention.remember(source)).state for count in range(6)]
    assert all((later > earlier).all() for earlier, later in pairwise(states))
    attended = attention(query, attention.remember(source), weights=True)
    assert_close(attention(query, attention.remember(source.flip(1)), weights=True).weights, attended.weights)
    normalised = Gmm(3, normalise="sum_to_one")(query, attention.remember(source), weights=True)
    assert_close(normalised.weights.sum(-1), torch.ones(2, 1, 6))


def test_softplus_has_an_inverse():
    assert_close(torch.nn.functional.softplus(torch.tensor(invert_softplus(0.3))), torch.tensor(0.3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"components": 0}, "at least one component, got components=0"),
        ({"version": 3}, "0, 1 and 2 of Battenberg et al., got version=3"),
        ({"initial_move": 0.0}, "an initial_move above 0 and an initial_width above 0.01, got 0.0 and 10.0"),
        ({"impl": "fused"}, "no kernel covers Gmm"),
    ],
)
def test_options_without_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Gmm(3, **options)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("gmm", kind)
    check_steps_and_beams("gmm", kind)
