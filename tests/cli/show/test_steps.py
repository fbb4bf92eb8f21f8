"""The three stages with numbers: what is printed is what the code gives."""

import re

import pytest
import torch

from regard import registry
from regard.attention import Everywhere, ScaledDot, Softmax, attend
from regard.cli.show.example import KEY, QUERY, TARGET, build, inputs
from regard.cli.show.steps import write_steps

STAGES = [(kind, name) for kind in ("score", "normalise", "scope") for name in registry.names(kind)]


def numbers(text, part=None):
    """The rows of numbers behind the target words, all or those of one of the three parts; 0 where a cell is hidden."""
    body = text if part is None else text.partition(f"\n{part}. ")[2].partition(f"\n{part + 1}. ")[0]
    rows = [line.split() for line in body.splitlines()]
    rows = [row[1:] for row in rows if row and row[0] in TARGET and re.match(r"-?\d|·", row[1])]
    return torch.tensor([[0.0 if cell == "·" else float(cell) for cell in row] for row in rows])


def attended(kind, name):
    """What attend() gives for the same stages, by whatever kernel it likes."""
    stages = {"score": ScaledDot(), "normalise": Softmax(), "scope": Everywhere()} | {kind: build(name, kind)}
    return attend(*inputs(), **stages, weights=True)


def close(printed, computed):
    torch.testing.assert_close(printed, computed.detach(), atol=5.1e-4, rtol=0)


@pytest.mark.parametrize(("kind", "name"), STAGES, ids=str)
def test_the_printed_numbers_are_those_of_attend(kind, name):
    text, expected = write_steps(name, kind), attended(kind, name)
    weights = numbers(text, 2)
    close(weights[:, :-1], expected.weights[-1, 0])
    close(weights[:, -1], expected.weights[-1, 0].sum(-1))
    close(numbers(text, 3), expected.context[-1, 0])


@pytest.mark.parametrize("name", registry.names("mechanisms"))
def test_the_printed_numbers_are_those_of_the_mechanism(name):
    text, module = write_steps(name), build(name, "mechanisms")
    expected = module(QUERY[None], module.remember(KEY[None]), weights=True)
    close(numbers(text, 2)[:, :-1], expected.weights[0].flatten(0, 1))
    close(numbers("\n".join(text.splitlines()[-6:])), expected.context[0])


@pytest.mark.parametrize("name", registry.names("positions"))
def test_positions_print_their_vectors_and_both_ways_to_join(name):
    text = write_steps(name)
    added, beside = (build(name, "positions", join=join)(KEY[None])[0] for join in ("add", "concat"))
    rows = [line.split()[1:] for line in text.splitlines() if re.match(r" +(Tom|chases|Jerry) +-?\d", line)]
    close(torch.tensor([[float(cell) for cell in row] for row in rows[3:6]]), added)
    close(torch.tensor([[float(cell) for cell in row] for row in rows[6:9]]), beside)


@pytest.mark.parametrize(
    ("name", "untrained"), [("additive", True), ("learned", True), ("luong", True), ("dot", False), ("entmax", False)]
)
def test_untrained_parameters_are_called_so(name, untrained):
    assert ("untrained parameters, seed 0" in write_steps(name)) == untrained


def test_steps_leave_the_random_numbers_alone():
    before = torch.get_rng_state()
    write_steps("transformer")
    assert torch.equal(torch.get_rng_state(), before)


def test_a_kernel_has_no_steps_of_its_own():
    with pytest.raises(
        LookupError, match="'sdpa' is a kernel, and its steps are those of what it covers; show the steps of"
    ):
        write_steps("sdpa", "kernels")


def test_an_output_layer_has_no_stages():
    with pytest.raises(LookupError, match="'mixture' is an output layer, which has no stages; show the steps of a score"):
        write_steps("mixture", "output_heads")


def test_hidden_cells_are_dots_and_the_scope_says_why():
    text = write_steps("causal")
    assert "    汤姆  1.000       ·      ·  1.000\n" in text
    assert "追逐 stands at position 1; hidden from it: Jerry, since allowed(q, k) ⇔ k ≤ q" in text


@pytest.mark.parametrize(
    ("name", "setting"), [("local", "Local(window=1)"), ("blocks", "Blocks(size=2)"), ("top_k", "TopK(k=2)")]
)
def test_the_settings_of_the_example_are_printed(name, setting):
    assert setting in write_steps(name)
