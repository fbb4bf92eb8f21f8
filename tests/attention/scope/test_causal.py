from regard.attention.scope.causal import Causal


def test_a_query_sees_itself_and_everything_before(draw):
    assert draw(Causal()) == ["1000", "1100", "1110", "1111"]


def test_the_last_of_many_keys_is_seen_by_the_last_query(draw):
    assert draw(Causal(), queries=2, keys=3, offset=1) == ["110", "111"]


def test_queries_beyond_the_keys_see_all_of_them(draw):
    assert draw(Causal(), queries=3, keys=2) == ["10", "11", "11"]
