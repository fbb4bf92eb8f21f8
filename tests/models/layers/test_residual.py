import pytest
import torch
from torch.testing import assert_close

from regard.models.layers.residual import Residual, build_activation

DATA = torch.tensor([[[1.0, 3.0]]])


def test_pre_norms_what_the_sublayer_gets_and_adds_to_the_rest():
    residual = Residual(2, "pre")
    assert_close(residual.normalise_input(DATA), torch.tensor([[[-1.0, 1.0]]]), atol=1e-4, rtol=0)
    assert_close(residual.add(DATA, DATA), 2 * DATA)


def test_post_norms_the_sum():
    residual = Residual(2, "post")
    assert residual.normalise_input(DATA) is DATA
    assert_close(residual.add(DATA, DATA), torch.tensor([[[-1.0, 1.0]]]), atol=1e-4, rtol=0)


def test_dropout_falls_on_what_was_found_and_not_on_the_way_around():
    found = Residual(64, "pre", dropout=0.5).add(torch.zeros(1, 1, 64), torch.ones(1, 1, 64))
    assert set(found.unique().tolist()) == {0.0, 2.0}


def test_rms_divides_what_the_sublayer_gets_by_its_root_mean_square():
    residual = Residual(2, "rms")
    assert_close(residual.normalise_input(DATA), DATA / 5**0.5, atol=1e-5, rtol=0)
    assert_close(residual.add(DATA, DATA), 2 * DATA)
    assert [name for name, _ in residual.named_parameters()] == ["norm.weight"]


@pytest.mark.parametrize("kind", ["pre", "post", "rms"])
def test_to_leave_and_enter_in_one_go_is_to_do_both(kind):
    residual, following = Residual(2, kind), Residual(2, kind)
    stream, entered = residual.add_and_normalise(DATA, DATA, following.norm)
    assert_close(stream, residual.add(DATA, DATA))
    assert_close(entered, following.normalise_input(stream))
    assert not residual.cleans(DATA)


def test_a_bias_that_is_lent_is_added_before_anything_is_dropped():
    residual = Residual(64, "pre", dropout=0.5)
    residual.added = torch.ones(64)
    found = residual.add(torch.zeros(1, 1, 64), torch.ones(1, 1, 64))
    assert set(found.unique().tolist()) == {0.0, 4.0}


def test_a_norm_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="norm needs to be 'pre', 'post' or 'rms', got 'both'"):
        Residual(2, "both")


@pytest.mark.parametrize(
    ("name", "found"), [("relu", [0.0, 1.0]), ("gelu", [-0.15865, 0.84135]), ("swish", [-0.26894, 0.73106])]
)
def test_an_activation_is_known_by_its_name(name, found):
    assert_close(build_activation(name)(torch.tensor([-1.0, 1.0])), torch.tensor(found), atol=1e-5, rtol=0)


def test_gelu_by_tanh_is_nearly_gelu():
    data = torch.linspace(-4, 4, 99)
    assert_close(build_activation("gelu_tanh")(data), build_activation("gelu")(data), atol=1e-3, rtol=0)
    assert not torch.equal(build_activation("gelu_tanh")(data), build_activation("gelu")(data))


def test_an_activation_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="activation needs to be one of relu, gelu, swish, gelu_tanh, got 'tanh'"):
        build_activation("tanh")
