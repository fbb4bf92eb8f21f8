"""Estimates, and the files of profiles."""

import json
import os

import pytest
import torch

from regard.attention import cost
from regard.attention.cost import Profile, Work, read_profile, write_profile
from regard.errors import DamagedError

PROFILE = Profile("a chip", 2.0, {"sdpa": {"half/forward": {"call": 3.0, "products": 0.5}}})


def test_an_estimate_is_the_call_and_the_counts():
    host = PROFILE._replace(overlap=1.0)
    assert host.estimate("sdpa", Work("half/forward", {"products": 8.0, "elements": 9.0}, 0)) == 7.0
    assert PROFILE.estimate("sdpa", Work("half/forward", {"products": 8.0}, 0)) == 5.0  # the host overlaps: 3, 4, 5
    assert PROFILE._replace(speed=2.0).estimate("sdpa", Work("half/forward", {"products": 16.0}, 0)) == 5.0
    assert PROFILE.estimate("flash", Work("half/forward", {}, 0)) == float("inf")


def test_a_variant_that_was_not_measured_takes_the_nearest():
    assert cost.find_nearest("plain/half/training", ("masked/half/forward", "plain/half/forward")) == "plain/half/forward"
    assert cost.find_nearest("x", ("b", "a")) == "a"


@pytest.mark.parametrize("name", ["cpu", "h200"])
def test_the_profiles_of_the_package_can_be_read(name):
    profile = read_profile(cost.FOLDER / f"{name}.json")
    assert {"sdpa", "additive" if name == "cpu" else "flash", "reference", "linear"} <= set(profile.paths)
    numbers = [value for variants in profile.paths.values() for each in variants.values() for value in each.values()]
    assert all(0 < value < float("inf") for value in numbers)


def test_a_profile_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "chip.json"
    write_profile(path, PROFILE)
    assert read_profile(path) == PROFILE
    fields = json.loads(path.read_text())
    fields["profile"]["paths"]["sdpa"]["half/forward"]["call"] = 0.0
    for text in (json.dumps(fields), "{", "[]"):
        path.write_text(text)
        with pytest.raises(DamagedError, match=r"is no profile of a device: .*; regard bench calibrate writes another"):
            read_profile(path)


def test_the_users_own_profile_is_read_where_nobody_else_can_write(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cost.read_own_profile("A Chip 3") is None
    assert not list(tmp_path.iterdir())  # looking for it makes no folder
    path = cost.find_own_path("A Chip 3")
    assert path == tmp_path / "regard" / "profiles" / "a-chip-3.json"
    write_profile(path, PROFILE)
    os.chmod(path, 0o600)
    assert cost.read_own_profile("A Chip 3") == PROFILE
    os.chmod(path, 0o666)
    assert cost.read_own_profile("A Chip 3") is None
    os.chmod(path, 0o600)
    path.write_text("{}")
    with pytest.warns(RuntimeWarning, match="the profile of the package takes its place"):
        assert cost.read_own_profile("A Chip 3") is None


def test_a_cpu_has_a_profile_of_every_path():
    profile = cost.find_profile(torch.device("cpu"))
    assert {"sdpa", "flash", "reference"} <= set(profile.paths)
