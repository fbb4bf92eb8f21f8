import re

import pytest
import torch

from regard.attention import attend
from regard.attention.scope import And, Not, Or, Scope, iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.scope.prefix import Prefix


def test_both_have_to_allow_it(draw):
    assert draw(Causal() & Local(1)) == ["1000", "1100", "0110", "0011"]


def test_either_may_allow_it(draw):
    assert draw(Causal() | Prefix(2)) == ["1100", "1100", "1110", "1111"]


def test_what_is_not_allowed_is_the_rest(draw):
    assert draw(~Causal()) == ["0111", "0011", "0001", "0000"]


def test_compositions_compose_and_bind_as_in_python(draw):
    assert draw(Causal() & Local(1) | Prefix(1)) == ["1000", "1100", "1110", "1011"]
    assert draw(Causal() & ~Dilated(2)) == ["0000", "1000", "0100", "1010"]
    assert isinstance(Causal() & Local(1) | ~Prefix(1), Or)
    assert Causal() & Local(1) == And(Causal(), Local(1))
    assert ~Causal() == Not(Causal())


def test_a_scope_with_everywhere_is_itself_or_everything(draw):
    assert draw(Causal() & Everywhere()) == draw(Causal())
    assert draw(Causal() | Everywhere()) == ["1111"] * 4
    assert draw(~Everywhere()) == ["0000"] * 4


def test_parts_are_what_and_joins_and_nothing_deeper():
    assert list(iterate_parts(Causal())) == [Causal()]
    assert list(iterate_parts(Causal() & Local(1) & Dilated(2))) == [Causal(), Local(1), Dilated(2)]
    assert list(iterate_parts(Causal() & (Local(1) | Dilated(2)))) == [Causal(), Local(1) | Dilated(2)]


def test_a_composition_is_checked_on_both_sides():
    made_for_others = Padding(torch.ones(3, 4, dtype=torch.bool))
    for scope in (
        Causal() & made_for_others,
        made_for_others & Causal(),
        Causal() | made_for_others,
        made_for_others | Causal(),
        ~made_for_others,
    ):
        with pytest.raises(ValueError, match="Padding was made for"):
            scope.allowed(2, 1, 4, 4, 0, torch.device("cpu"))


def test_an_offset_moves_the_queries_along_the_keys(draw):
    assert draw(Causal(), queries=2, keys=4) == ["1000", "1100"]
    assert draw(Causal(), queries=2, keys=4, offset=2) == ["1110", "1111"]
    assert draw(Local(1), queries=2, keys=4, offset=1) == ["1110", "0111"]


def test_each_row_may_have_an_offset_of_its_own(draw):
    offset = torch.tensor([0, 2])
    assert draw(Causal(), queries=2, offset=offset, row=0, batch=2) == ["1000", "1100"]
    assert draw(Causal(), queries=2, offset=offset, row=1, batch=2) == ["1110", "1111"]


def test_the_last_query_stands_at_the_last_key_unless_told():
    query, key = torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 4, 3)

    def seen(**options: object) -> list[list[bool]]:
        return (attend(query, key, key, scope=Causal(), weights=True, **options).weights[0, 0] > 0).int().tolist()

    assert seen() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert seen(offset=0) == [[1, 0, 0, 0], [1, 1, 0, 0]]
    assert seen(offset=torch.tensor([1])) == [[1, 1, 0, 0], [1, 1, 1, 0]]


def test_with_more_queries_than_keys_the_first_query_stands_at_the_first_key():
    query, key = torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 2, 2)
    weights = attend(query, key, key, scope=Causal(), weights=True).weights
    assert (weights[0, 0] > 0).int().tolist() == [[1, 0], [1, 1], [1, 1]]


def test_a_mask_is_no_larger_than_it_has_to_be():
    sizes = (5, 3, 4, 6, 0, torch.device("cpu"))
    assert Causal().allowed(*sizes).shape == (1, 1, 4, 6)
    assert Padding(torch.ones(5, 6, dtype=torch.bool)).allowed(*sizes).shape == (5, 1, 1, 6)


def test_a_predicate_of_four_positions_is_a_scope():
    class OddHeadsOnly(Scope):
        def __call__(self, b, h, q, k):
            return (h % 2 == 1) & (k == k)

    allowed = OddHeadsOnly().allowed(1, 4, 2, 3, 0, torch.device("cpu"))
    assert allowed.shape == (1, 4, 1, 3)
    assert allowed.all(-1).flatten().tolist() == [False, True, False, True]


def test_a_sample_is_the_scope_with_its_defaults():
    assert Local.sample(batch=2, keys=5) == Local()


@pytest.mark.unhooked
@pytest.mark.parametrize("compose", [lambda scope, mask: scope & mask, lambda scope, mask: scope | mask], ids=["and", "or"])
def test_a_mask_is_no_part_of_a_composition(compose):
    with pytest.raises(TypeError, match=re.escape("a Scope such as Causal(), got a torch.bool tensor")):
        compose(Causal(), torch.ones(1, 2, dtype=torch.bool))
