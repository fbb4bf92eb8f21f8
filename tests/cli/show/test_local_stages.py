"""A window written as a scope and a normaliser is the window of the mechanism."""

import math
import re

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Everywhere, Softmax
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.mechanisms.luong import Luong
from regard.cli import show
from regard.cli.show.local_stages import apart
from regard.cli.show.page import covered


@pytest.mark.parametrize("kind", [LocalM, LocalP])
def test_taken_apart_the_stages_give_the_weights_of_the_mechanism(kind):
    module = kind(3, width=2)
    query, source = torch.randn(2, 5, 3), torch.randn(2, 8, 3)
    memory = module.remember(source)
    stages = apart(module, query, memory)
    allowed = stages["scope"].allowed(2, 1, 5, 8, 0, torch.device("cpu"))
    weights = stages["normalise"](stages["score"](query[:, None], memory.keys), allowed)
    assert_close(weights, module(query, memory, offset=0, weights=True).weights)


def test_without_a_window_there_is_nothing_to_take_apart():
    module = Luong(3)
    stages = apart(module, torch.randn(1, 2, 3), module.remember(torch.randn(1, 4, 3)))
    assert stages == {"score": module.score, "normalise": Softmax(), "scope": Everywhere()}


def test_the_page_says_what_is_hidden_and_how_a_share_falls_off():
    assert "stands at position 0; hidden from it: Jerry, since allowed(q, k) ⇔ |k - p_q| ≤ width" in show.steps("local_m")
    told = re.search(r"= ([\d.]+),  \1 · exp\(-\(2 - ([\d.]+)\)² / \(2 · 0\.5²\)\) = ([\d.]+)", show.steps("local_p"))
    inner, centre, share = map(float, told.groups())
    assert share == pytest.approx(inner * math.exp(-((2 - centre) ** 2) / 0.5), abs=2e-3)


def test_one_kernel_reads_through_windows():
    for name, kernel in (("local_m", "flash"), ("local_p", "predicted_window")):
        answers = covered(name, "mechanisms")
        assert answers.pop(kernel) == "needs a GPU, got cpu"
        assert set(answers.values()) == {f"reads all keys, and {name} gathers those of its windows"}
    assert "covers it" in covered("luong", "mechanisms").values()
