import pytest
import torch

from regard.tasks.forecast.models.temporal_fusion import GatedResidual, InterpretableAttention, VariableSelection

from ..networks import SIZES, build, draw_source


def test_a_closed_gate_leaves_the_input():
    network = GatedResidual(4, 4, dropout=0.0)
    with torch.no_grad():
        network.outer.bias[4:] = -50  # the gate
    data = torch.randn(3, 4)
    torch.testing.assert_close(network(data), network.norm(data))


def test_weights_over_variables_sum_to_one_and_a_variable_alone_has_all():
    static = torch.zeros(2, 8)
    _, weights = VariableSelection(5, 8, dropout=0.0)(torch.randn(2, 3, 5), static)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))
    _, alone = VariableSelection(1, 8, dropout=0.0)(torch.randn(2, 3, 1), static)
    assert (alone == 1).all()


def test_heads_share_their_values_so_that_the_mean_of_their_weights_is_what_was_read():
    attention = InterpretableAttention(8, heads=4, dropout=0.0).eval()
    query, data, keep = torch.randn(2, 3, 8), torch.randn(2, 10, 8), torch.ones(2, 10, dtype=torch.bool)
    context, weights = attention(query, data, keep, weights=True)
    torch.testing.assert_close(context, attention.outer(weights.mean(1) @ attention.value(data)))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 3))


def test_a_step_of_the_horizon_looks_at_no_later_one_nor_before_the_beginning():
    attention = InterpretableAttention(8, heads=2, dropout=0.0).eval()
    keep = torch.tensor([[False, False, *[True] * 8]])
    _, weights = attention(torch.randn(1, 3, 8), torch.randn(1, 10, 8), keep, weights=True)
    assert (weights[..., :2] == 0).all()
    assert (weights[0, :, 0, 8:] == 0).all()
    assert (weights[0, :, 2, 2:] > 0).all()
    with pytest.raises(ValueError, match="interpretable attention needs a size that its heads divide, got 8 and 3 heads"):
        InterpretableAttention(8, heads=3, dropout=0.0)


def test_a_known_covariate_of_a_later_step_changes_no_earlier_one():
    model, source = build("temporal_fusion"), draw_source()
    changed = source._replace(known=source.known.clone())
    changed.known[:, -1] += 1
    first, second = model(source).parameters, model(changed).parameters
    torch.testing.assert_close(second[:, : SIZES.horizon - 1], first[:, : SIZES.horizon - 1])
    assert not torch.allclose(second[:, -1], first[:, -1])


def test_what_a_step_looked_at_and_which_variables_it_took_come_with_a_forecast():
    looks = build("temporal_fusion")(draw_source(), weights=True).looks
    assert looks["attention"].weights.shape == (3, 2, SIZES.horizon, SIZES.look_back)
    assert looks["past_variables"].weights.shape == (3, 1, 1, SIZES.targets + SIZES.past + SIZES.known)
