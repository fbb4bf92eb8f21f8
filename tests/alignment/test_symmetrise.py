import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.symmetrise import HEURISTICS, symmetrise

LINKS = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=14)
FORWARD = {(0, 0), (1, 1), (3, 2), (5, 4)}
REVERSE = {(0, 0), (2, 1), (3, 1), (5, 5)}


@pytest.mark.parametrize(
    ("how", "links"),
    [
        ("intersection", {(0, 0)}),
        ("union", FORWARD | REVERSE),
        # 1-1 touches 0-0; then 2-1 touches 1-1 and 3-1 touches 2-1, their sources still free; 3-2 touches 2-1 or 3-1
        ("grow-diag", {(0, 0), (1, 1), (2, 1), (3, 1), (3, 2)}),
        # 5-4 lies apart; once it is taken, 5-5 still brings a free target, but no longer a free source
        ("grow-diag-final", FORWARD | REVERSE),
        ("grow-diag-final-and", FORWARD | REVERSE - {(5, 5)}),
    ],
)
def test_two_directions_become_one(how, links):
    assert symmetrise(FORWARD, REVERSE, how) == links


def literally(forward, reverse, how, size=6):
    """The algorithm as the manual of Moses tells it, over every cell of the table."""
    taken, union = forward & reverse, forward | reverse
    steps = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))  # target, source

    def free(link, both=False):
        lonely = [all(other[side] != link[side] for other in taken) for side in (0, 1)]
        return all(lonely) if both else any(lonely)

    added = True
    while added:
        added = False
        for target in range(size):
            for source in range(size):
                if (source, target) in taken:
                    for down, right in steps:
                        near = source + right, target + down
                        if near in union - taken and free(near):
                            taken, added = taken | {near}, True
    for links in (forward, reverse) if "final" in how else ():
        for target in range(size):
            for source in range(size):
                if (source, target) in links and free((source, target), how.endswith("and")):
                    taken |= {(source, target)}
    return taken


@pytest.mark.parametrize("how", HEURISTICS[2:])
@given(forward=LINKS, reverse=LINKS)
def test_growing_is_what_the_manual_of_moses_says(how, forward, reverse):
    assert symmetrise(forward, reverse, how) == literally(forward, reverse, how)


@given(forward=LINKS, reverse=LINKS)
def test_each_way_holds_the_one_before(forward, reverse):
    both, grown, final_and, final, union = (
        symmetrise(forward, reverse, how)
        for how in ("intersection", "grow-diag", "grow-diag-final-and", "grow-diag-final", "union")
    )
    assert both <= grown <= final_and
    assert grown <= final <= union
    assert final_and <= union


def test_another_way_is_refused():
    with pytest.raises(ValueError, match=r"two directions become one by intersection, union, grow-diag, .*, got 'grow'"):
        symmetrise(set(), set(), "grow")
