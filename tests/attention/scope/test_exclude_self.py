from regard.attention.scope.exclude_self import ExcludeSelf


def test_a_query_sees_all_but_itself(draw):
    assert draw(ExcludeSelf(), 3, 3) == ["011", "101", "110"]


def test_its_own_position_follows_the_offset(draw):
    assert draw(ExcludeSelf(), 2, 4, offset=2) == ["1101", "1110"]
