"""Samples, fits and the whole of a calibration, on very few and small requests."""

import random

import pytest
import torch

from regard.attention import attend, dispatch
from regard.attention.cost import Work, read_profile
from regard.kernels.calibration import fit, run
from regard.kernels.calibration.fit import Row
from regard.kernels.calibration.measure import list_ways
from regard.kernels.calibration.sample import FAMILIES, Limits, build_call, sample_request

SMALL = Limits(12, 3, 600, 1 << 12)


def test_a_seed_gives_the_same_requests():
    first, second = (sample_request(random.Random(3), "cpu", SMALL) for _ in range(2))
    assert first == second
    sides = [build_call(sample, "cpu").sides for sample in (first, second)]
    assert all(torch.equal(one, other) for one, other in zip(*sides, strict=True))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_can_be_attended_by_each_of_its_paths(family):
    call = build_call(sample_request(random.Random(5), "cpu", SMALL, family), "cpu")
    before = dict(dispatch.KERNELS)
    with torch.set_grad_enabled(call.gradient is not None):
        contexts = [way() for way in list_ways(call).values()]
    assert contexts
    assert before == dispatch.KERNELS
    assert attend(*call.sides, **call.stages).context.shape == call.sides[0].shape


def test_a_fit_finds_the_coefficients_of_exact_times(monkeypatch):
    monkeypatch.setattr(fit, "STEPS", 150)
    rng = random.Random(0)
    counts = [{"products": rng.uniform(0.1, 50.0), "elements": rng.uniform(0.001, 1.0)} for _ in range(30)]
    rows = [Row("sdpa", "plain/float32/forward", one, 9 + 20 * one["products"] + 700 * one["elements"]) for one in counts]
    profile = fit.fit_profile("a chip", rows, "cpu")
    for row in rows:
        assert profile.estimate("sdpa", Work(row.variant, row.counts, 0)) == pytest.approx(row.microseconds, rel=0.25)


def test_a_calibration_writes_a_profile(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run, "REQUEST_SECONDS", 0.0)
    monkeypatch.setattr("regard.kernels.calibration.fit.STEPS", 5)
    monkeypatch.setattr("regard.kernels.calibration.run.sample_request", _sample_small)
    profile = run.calibrate("cpu", 0, 6, 20.0, tmp_path / "own.json", tmp_path / "rows.jsonl")
    assert read_profile(tmp_path / "own.json") == profile
    assert {row.path for row in run.read_rows(tmp_path / "rows.jsonl")} == set(profile.paths)
    assert "of 6 requests" in capsys.readouterr().out


def _sample_small(rng, device, limits, family):
    return sample_request(rng, device, SMALL, family)
