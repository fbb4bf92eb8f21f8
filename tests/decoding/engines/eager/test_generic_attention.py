import pytest
import torch

from regard import registry
from regard.decoding.engines.eager.attention import ModuleAttention
from regard.decoding.engines.eager.linear import prepare_linear
from regard.models.layers.beam_attention import attend_beams
from regard.tree import select

from .test_attention import read

PARENTS = torch.tensor([0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("name", [*registry.names("mechanisms"), "additive+sparsemax"])
def test_every_attention_finds_what_it_finds_through_reordering_and_leaving(name):
    made, memory = read(name)
    made.eval()
    first, second, third = (torch.randn(rows, 8) for rows in (3, 6, 2))
    asking = ModuleAttention(made, memory, None)
    with torch.no_grad():
        one = attend_beams(made, first[:, None], memory, made.start(memory), position=0)
        torch.testing.assert_close(asking(first), one.context[:, 0])
        asking.follow(PARENTS)
        two = attend_beams(made, second[:, None], memory, select(one.state, PARENTS), position=1)
        torch.testing.assert_close(asking(second), two.context[:, 0])
        staying, rows = torch.tensor([1]), torch.tensor([3, 2])
        asking.leave(staying)
        asking.follow(rows)
        three = attend_beams(made, third[:, None], select(memory, staying), select(two.state, rows), position=2)
        torch.testing.assert_close(asking(third), three.context[:, 0])


def test_it_is_added_to_what_was_before_through_the_layer_behind():
    made, memory = read("monotonic")
    made.eval()
    behind, before, query = torch.nn.Linear(made.size, 5), torch.randn(3, 5), torch.randn(3, 8)
    with torch.no_grad():
        expected = before + behind(ModuleAttention(made, memory, None)(query))
        torch.testing.assert_close(
            ModuleAttention(made, memory, prepare_linear(behind)).onto(before.clone(), query), expected
        )
        alone = torch.randn(3, made.size)
        expected = alone + ModuleAttention(made, memory, None)(query)
        torch.testing.assert_close(ModuleAttention(made, memory, None).onto(alone, query), expected)
