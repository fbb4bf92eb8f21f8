"""The worked example of attention inside a CNN: what is printed is what the module gives."""

import re

import pytest
import torch

from regard import registry
from regard.cli.show.page import write_page
from regard.cli.show.picture import PICTURE, build
from regard.cli.show.picture import write_steps as steps_of_picture
from regard.cli.show.steps import write_steps

NAMES = registry.names("visual")


def rows(part):
    """The numbers of a table: those of each line behind its label."""
    found = [re.sub(r"(channel|place|branch) \d", "", line).split() for line in part.splitlines()]
    return torch.tensor([[float(each) for each in line] for line in found if line])


@pytest.mark.parametrize("name", NAMES)
def test_the_printed_numbers_are_those_of_the_module(name):
    attended, printed = build(name).attend(PICTURE), steps_of_picture(name)
    context = rows(printed[-1]).view_as(PICTURE)
    torch.testing.assert_close(context, attended.context, atol=5.1e-4, rtol=0)
    if name != "channel_spatial":
        weights = rows(printed[6])
        torch.testing.assert_close(weights, attended.weights[0].flatten(0, 1), atol=5.1e-4, rtol=0)


def test_a_composition_shows_both_of_its_halves():
    module, printed = build("channel_spatial"), steps_of_picture("channel_spatial")
    first = module.channel.attend(PICTURE)
    second = module.spatial.attend(first.context)
    tables = [printed[place + 1] for place, part in enumerate(printed) if part.startswith("2. normalise")]
    for table, half in zip(tables, (first, second), strict=True):
        torch.testing.assert_close(rows(table), half.weights[0, 0], atol=5.1e-4, rtol=0)


def test_a_share_is_worked_out_by_hand():
    text = write_steps("selective_kernel")
    assert re.search(
        r"channel 1 and branch 2 by hand\n +exp\(-0\.442\) / \(exp\(-0\.615\) \+ exp\(-0\.442\)\) = 0\.543", text
    )
    assert re.search(r"\n    place \d by hand\n +1 / \(1 \+ exp", write_steps("spatial"))


def test_what_begins_by_changing_nothing_says_so():
    assert "as it came, since what is added begins at zero" in write_steps("non_local")
    assert "as it came" not in write_steps("channel")


def test_the_steps_are_found_by_name_and_leave_the_random_numbers_alone():
    before = torch.get_rng_state()
    assert write_steps("channel").startswith("channel (visual)\n================\n\na picture of 2 channels, 2 x 3 places\n")
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_formula_paper_cost_and_options_and_leads_to_the_steps(name):
    text = write_page(name)
    made = registry.find(name)
    assert text.startswith(f"{name} (visual)\n")
    assert f"    from regard.attention import {made.__name__}\n    {made.__name__}(channels: int" in text
    assert "\nCost: " in text
    assert "https://arxiv.org/abs/" in text
    assert "Kernels" not in text
    assert text.endswith(f"With numbers: regard show {name} --steps")
