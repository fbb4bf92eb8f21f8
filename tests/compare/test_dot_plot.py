import re

from regard.compare.dot_plot import EDGE, WIDTH, Scale, scale, strip
from regard.compare.outcome import Column

from .conftest import done

BLEU = Column("valid", "bleu")


def places(drawn, what="circle", attribute="cx"):
    return [float(each) for each in re.findall(rf'<{what}[^>]* {attribute}="([\d.]+)"', drawn)]


def test_every_seed_is_a_dot_between_the_least_and_the_greatest_of_all():
    outcomes = [done("a", bleu=10.0), done("a", seed=1, bleu=20.0)]
    drawn = strip(BLEU, outcomes, scale(BLEU, [*outcomes, done("b", bleu=30.0)], seeds=2))
    assert places(drawn) == [EDGE, WIDTH / 2]
    assert places(drawn, 'line class="mean"', "x1") == [(EDGE + WIDTH / 2) / 2]
    assert "<title>0: 10.0 [9.00, 11.0]; 1: 20.0 [19.0, 21.0]</title>" in drawn


def test_several_seeds_have_their_deviation_and_one_has_its_interval():
    shared = Scale(0.0, 30.0)
    [low], [high] = (places(strip(BLEU, [done("a", bleu=15.0)], shared), 'line class="spread"', end) for end in ("x1", "x2"))
    assert (low, high) == (shared.place(14.0), shared.place(16.0))
    drawn = strip(BLEU, [done("a", bleu=14.0), done("a", seed=1, bleu=16.0)], shared)
    assert places(drawn, 'line class="spread"', "x1") == [shared.place(15 - 2**0.5)]
    assert "mean" not in strip(BLEU, [done("a")], shared)


def test_a_scale_has_room_for_the_intervals_that_are_drawn():
    assert scale(BLEU, [done("a", bleu=10.0), done("b", bleu=30.0)], seeds=1) == Scale(9, 31)
    assert scale(BLEU, [done("a", bleu=10.0), done("b", bleu=30.0)], seeds=2) == Scale(10, 30)
    assert scale(BLEU, [], seeds=1) == Scale(0, 0)


def test_a_figure_that_is_the_same_everywhere_lies_in_the_middle():
    assert places(strip(BLEU, [done("a")], Scale(30.0, 30.0))) == [WIDTH / 2]
