"""The picture of hard attention's noise is measured, not made up."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest

TOP = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def hard():
    spec = importlib.util.spec_from_file_location("hard", TOP / "docs" / "hard.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(svg):
    return {"".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")}


def test_a_baseline_lowers_the_variance_of_a_model_that_is_really_trained(hard):
    curves = {curve.baseline: curve for curve in hard.measure(steps=6, every=6, draws=4)}
    assert all(curve.steps == [6] for curve in curves.values())
    none, average, learned = (curves[each].variances[0] for each in ("none", "moving_average", "learned"))
    assert 0 < average < none / 10
    assert 0 < learned < none / 10
    drawn = hard.picture(list(curves.values()))
    assert {"no baseline", "moving average", "learned baseline", "updates"} <= words(drawn)


def test_the_picture_that_is_kept_shows_all_three(hard):
    kept = (TOP / "docs" / "hard.svg").read_text(encoding="utf-8")
    assert {"no baseline", "moving average", "learned baseline", "updates", "480"} <= words(kept)


def test_names_do_not_stand_upon_each_other(hard):
    frame = hard.Frame(last=10, low=-2, high=0)
    curves = [hard.Curve("none", [10], [0.5]), hard.Curve("moving_average", [10], [0.1]), hard.Curve("learned", [10], [0.1])]
    first, second, third = hard.labels(curves, frame)
    assert first == pytest.approx(frame.down(-0.30103) + 4)
    assert second == pytest.approx(frame.down(-1.0) + 4)
    assert third == pytest.approx(second + 16)
