import json
import math
import time

import pytest

from regard.training.throughput import Throughput


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_means_are_over_tokens_and_speed_counts_updates_alone(clock):
    speed = Throughput()
    for loss, tokens in ((2.0, 10), (1.0, 30)):
        with speed.timed():
            clock[0] += 2
        speed.add(loss, tokens, {"nll": loss / 2})
    clock[0] += 50  # an evaluation
    assert speed.record() == {"loss": 1.25, "nll": 0.625, "tokens_per_second": 10.0, "waited": 0.0}
    assert speed.record() == {"loss": None, "tokens_per_second": 0.0, "waited": 0.0}


def test_what_updates_wait_for_batches_is_a_share_of_their_time(clock):
    speed = Throughput()
    with speed.timed():
        with speed.waiting():
            clock[0] += 1
        clock[0] += 3
    assert speed.record()["waited"] == 0.25
    assert speed.record()["waited"] == 0.0


def test_what_a_gpu_rests_between_updates_is_a_share_of_their_time(clock):
    speed = Throughput()
    for gap in (0.5, 0.25):
        with speed.timed():
            clock[0] += 1.5
        speed.rest(gap)
    assert speed.record()["idle"] == 0.25
    assert "idle" not in speed.record()


def test_time_goes_on_over_runs(clock):
    speed = Throughput(30.0)
    clock[0] += 12
    assert speed.elapsed() == 42.0


def test_time_left_follows_the_pace_and_the_minutes(clock):
    speed = Throughput()
    assert speed.estimate_remaining(10, 100, None) is None
    clock[0] += 20
    assert speed.estimate_remaining(20, 100, None) == pytest.approx(160)
    assert speed.estimate_remaining(20, 100, 1.0) == pytest.approx(40)
    assert Throughput().estimate_remaining(10, 100, 2.0) == pytest.approx(120)


def test_the_last_loss_is_known_once_there_is_one(clock):
    speed = Throughput()
    assert speed.last is None
    speed.add(2.0, 10, {})
    speed.add(1.5, 10, {})
    speed.record()
    assert speed.last == 1.5


def test_a_stretch_is_gone_on_with_as_if_nothing_had_come_between(clock):
    speed, whole = Throughput(), Throughput()
    for number, (loss, tokens) in enumerate(((2.0, 10), (0.1 + 0.2, 30), (1.0, 7))):
        if number == 2:
            speed = Throughput(0.0, json.loads(json.dumps(speed.state())))
        for each in (speed, whole):
            each.rest(0.25)
            each.add(loss, tokens, {"nll": loss / 3, "odd": math.nan})
    for each in (speed, whole):
        each.seconds, each.waited = 4.0, 1.0
    left, right = speed.record(), whole.record()
    assert math.isnan(left.pop("odd"))
    assert math.isnan(right.pop("odd"))
    assert left == right
    assert (speed.last, speed.state()["tokens"]) == (1.0, 0)
