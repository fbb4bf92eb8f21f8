import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.grid_coverage import GridCoverage
from regard.attention.mechanisms.location_sensitive import LocationSensitive
from regard.models.attention_factory import build_attention
from regard.models.layers.beam_attention import attend_beams
from regard.tree import repeat, select

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind


def small(query=3, key=None, **options):
    return GridCoverage(query, key, **{"filters": 2, "kernel": 3} | options)


def test_a_plain_case_can_be_worked_by_hand():
    found = small(1, filters=1)
    for parameter in found.parameters():
        parameter.data.fill_(1.0)
    found.V.bias.data.fill_(0.0)
    found.Q.weight.data.zero_()
    found.Q.weight.data[0, 0, 0, 1] = 2.0  # each place is told twice what the one above it got
    query, source = torch.zeros(1, 2, 1), torch.tensor([[[0.0], [1.0], [0.0], [0.0]]])
    weights = found(query, found.remember(Encoded(source, grid=(2, 2))), weights=True).weights[0, 0]
    # first e = [0, tanh 1, 0, 0] = [0, 0.76159, 0, 0]; its softmax is [0.19446, 0.41648, 0.19446, 0.19446]
    # then f = [0, 0, 0.38892, 0.83296] and e = [0, tanh 1, tanh 0.38892, tanh 0.83296] = [0, 0.76159, 0.37043, 0.68208]
    first = torch.tensor([0.0, 0.761594, 0.0, 0.0]).softmax(0)
    below = torch.tensor([0.0, 1.0, 2 * first[0], 2 * first[1]]).tanh()
    assert_close(weights, torch.stack((first, below.softmax(0))), atol=1e-5, rtol=0)
    assert_close(first, torch.tensor([0.194465, 0.416606, 0.194465, 0.194465]), atol=1e-4, rtol=0)


def formula(found, query, source, rows, columns):
    """e_ti = vᵀ tanh(W s + U h_i + V f_ti + b), the convolution written as a sum over its square."""
    W, U, v = (each.weight[0] for each in (found.score.W, found.score.U, found.score.v))
    reach = found.Q.kernel_size[0] // 2
    covered, weights = torch.zeros(rows, columns), []
    for state in query:
        energies = []
        for place, h in enumerate(source):
            row, column, f = place // columns, place % columns, torch.zeros(len(found.Q.weight))
            for down in range(-reach, reach + 1):
                for across in range(-reach, reach + 1):
                    y, x = row + down, column + across
                    if 0 <= y < rows and 0 <= x < columns:
                        f = f + found.Q.weight[:, 0, down + reach, across + reach] * covered[y, x]
            energies.append(v[0] @ torch.tanh(W @ state + U @ h + found.V.weight @ f + found.V.bias))
        weights.append(torch.stack(energies).softmax(0))
        covered = covered + weights[-1].view(rows, columns)
    return torch.stack(weights), covered.flatten()


@pytest.mark.parametrize("kernel", [1, 3, 11])
def test_it_is_the_formula_of_the_paper(kernel):
    found = small(3, 2, kernel=kernel)
    found.V.bias.data.normal_()
    query, source = torch.randn(1, 4, 3), torch.randn(1, 6, 2)
    attended = found(query, found.remember(Encoded(source, grid=(3, 2))), weights=True)
    weights, covered = formula(found, query[0], source[0], 3, 2)
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])
    assert_close(attended.state[0], covered)


def test_a_source_without_a_grid_is_one_row():
    found, line = small(), LocationSensitive(3, filters=2, kernel=3, cumulative=True)
    line.score.load_state_dict(found.score.state_dict())
    line.V.load_state_dict(found.V.state_dict())
    line.F.weight.data = found.Q.weight.data[:, :, 1]
    query, source = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
    plain, row = (found(query, found.remember(Encoded(source, grid=grid))) for grid in (None, (1, 5)))
    assert_close(plain.context, row.context)
    assert_close(plain.context, line(query, line.remember(source)).context)
    column = found(query, found.remember(Encoded(source, grid=(5, 1))))
    assert not torch.allclose(plain.context, column.context)


def test_a_map_is_read_the_same_with_padding_around_it():
    found, query, data = small(), torch.randn(1, 4, 3), torch.randn(1, 2, 3, 3)
    alone = found(query, found.remember(Encoded(data.flatten(1, 2), grid=(2, 3))), weights=True)
    padded, keep = torch.full((1, 4, 5, 3), torch.nan), torch.zeros(1, 4, 5, dtype=torch.bool)
    padded[:, :2, :3], keep[:, :2, :3] = data, True
    encoded = Encoded(padded.flatten(1, 2), keep.flatten(1), grid=(4, 5))
    attended = found(query, found.remember(encoded), weights=True)
    assert_close(attended.context, alone.context)
    assert_close(attended.weights[..., keep.flatten()], alone.weights)
    assert not attended.weights[..., ~keep.flatten()].any()


def test_the_gradient_goes_back_through_all_looks():
    found = small(2).double()
    query, source = torch.randn(2, 3, 2, dtype=torch.float64), torch.randn(2, 4, 2, dtype=torch.float64)

    def context(query, source):
        return found(query, found.remember(Encoded(source, grid=(2, 2)))).context

    assert gradcheck(context, (query.requires_grad_(), source.requires_grad_()), fast_mode=True)
    last = context(query, source)[:, -1].sum()
    assert torch.autograd.grad(last, query)[0][:, 0].abs().sum() > 0


def test_beams_know_the_grid_too():
    found, query = small(), torch.randn(4, 2, 3)
    memory = found.remember(Encoded(torch.randn(2, 6, 3), grid=(2, 3)))
    assert memory.grid == repeat(memory, 2).grid == select(memory, torch.tensor([1])).grid == (2, 3)
    beams = attend_beams(found, query, memory, repeat(found.start(memory), 2), weights=True)
    assert_close(beams.weights, found(query, repeat(memory, 2), weights=True).weights)


def test_a_grid_of_other_size_is_refused():
    found = small()
    text = "GridCoverage needs a source with as many places as its grid, got 5 for 2 x 3; Encoded.grid says"
    with pytest.raises(ValueError, match=text):
        found(torch.randn(1, 1, 3), found.remember(Encoded(torch.randn(1, 5, 3), grid=(2, 3))))


@pytest.mark.parametrize("kernel", [0, 4])
def test_a_kernel_without_a_middle_is_refused(kernel):
    with pytest.raises(ValueError, match=f"GridCoverage needs an odd kernel, which has a middle, got {kernel}"):
        small(kernel=kernel)


def test_it_is_found_by_its_name():
    made = build_attention("grid_coverage", 4, 6, size=8, dropout=0.1)
    assert (made.V.weight.shape, made.Q.weight.shape) == ((8, 64), (64, 1, 11, 11))


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("grid_coverage", kind)
    check_steps_and_beams("grid_coverage", kind)
