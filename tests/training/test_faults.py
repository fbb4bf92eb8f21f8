"""What may go wrong while a model is trained, made to go wrong: T1 to T5 and T8 to T10 of the fault list.

T1 killed   T2 damaged   T3 disk full   T4 told to stop   T5 not a number   T8 out of memory   T9 something else there
T10 two at once
"""

import errno
import json
import math
import os
import random
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from regard import io, manifest
from regard.errors import DamagedWarning, FailedError, Interrupted, RefusedError
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.training import checkpoint
from regard.training.loop import train

from .small import Network, Part, Plain, experiment, fingerprint

pytestmark = pytest.mark.unhooked  # hundreds of trainings, whose shapes those of test_loop.py have too
SCRIPT = Path(__file__).with_name("faults.py")


def fork_server(directory, kills, signals, seed, limit):
    """Run faults.py. oneDNN is kept from AMX, which some virtual machines announce and do not have."""
    command = [sys.executable, str(SCRIPT), str(directory), str(kills), str(signals), str(seed)]
    surroundings = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=surroundings, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory):
    return fork_server(tmp_path_factory.mktemp("faults"), kills=50, signals=6, seed=1, limit=300)


def check_killed(counts, kills):
    assert counts["kills"] == kills
    assert counts["inside"] >= kills // 5
    assert counts["failed"] == 0
    assert counts["runs"] == counts["equal"] > 0


def check_signalled(counts):
    assert counts["codes"] == counts["saved"] == counts["signals"] > 0
    assert counts["slowest"] < 5.0
    assert counts["runs"] == counts["equal"] > 0


@pytest.mark.timeout(320)
def test_t1_a_training_killed_at_any_instant_ends_with_the_same_bits(disturbed):
    check_killed(disturbed["killed"], 50)


@pytest.mark.timeout(320)
def test_t4_a_signal_saves_and_exits_with_its_code_and_the_rest_is_the_same(disturbed):
    check_signalled(disturbed["signalled"])


@pytest.mark.soak
@pytest.mark.timeout(2000)
def test_t1_and_t4_a_thousand_times(tmp_path):
    result = fork_server(tmp_path, kills=1000, signals=100, seed=2, limit=1900)
    check_killed(result["killed"], 1000)
    check_signalled(result["signalled"])


# T2


def flip(path, chance):
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def truncate(path, chance):
    os.truncate(path, chance.randrange(path.stat().st_size))


def zero(path, chance):
    data = bytearray(path.read_bytes())
    first = chance.randrange(len(data))
    size = min(chance.randrange(1, 4096), len(data) - first)
    if not any(data[first : first + size]):
        first = next(place for place, byte in enumerate(data) if byte)
    data[first : first + size] = bytes(size)
    path.write_bytes(data)


def empty(path, chance):
    path.write_bytes(b"")


def missing(path, chance):
    path.unlink()


def nonsense(path, chance):
    path.write_text(chance.choice(["{", "null", "[]", '{"step": 8}', "\ufeff{}", "NaN"]), encoding="utf-8")


def swapped(path, chance):
    shutil.copy(path.parent.with_name("4") / path.name, path)


def other_file(path, chance):
    names = ["state.safetensors", "manifest.json"]
    shutil.copy(path.with_name(names[1 - names.index(path.name)]), path)


DAMAGES = (flip, truncate, zero, empty, missing, nonsense, swapped, other_file)


@pytest.fixture(scope="module")
def halfway(tmp_path_factory):
    """A run that stands at step 8 with checkpoints 4 and 8, and what the whole run of 12 steps comes to."""
    base = tmp_path_factory.mktemp("halfway")
    settings = {"checkpoint_every": 4, "evaluate_every": 4, "ema_decay": 0.9}
    train(experiment(max_steps=12, **settings), base / "whole", quiet=True)
    train(experiment(max_steps=8, **settings), base / "cut", quiet=True)
    return base / "cut", settings, fingerprint(base / "whole")


def damage_and_resume(halfway, directory, case):
    cut, settings, whole = halfway
    chance = random.Random(case)
    shutil.copytree(cut, directory)
    kind = DAMAGES[case % len(DAMAGES)]
    name = chance.choice(["state.safetensors", "manifest.json"])
    target = directory / "checkpoints" / "8" / name
    before = meaning(target)
    kind(target, chance)
    harmless = meaning(target) == before is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(experiment(max_steps=12, **settings), directory, quiet=True)
    told = [str(each.message) for each in caught if each.category is DamagedWarning]
    assert len(told) == (0 if harmless else 1), (kind.__name__, name, told)
    assert harmless or ("checkpoints/8" in told[0] and "moved to .bad-8" in told[0])
    assert fingerprint(directory) == whole, (kind.__name__, name)
    assert (directory / "checkpoints" / ".bad-8").exists() != harmless
    shutil.rmtree(directory)


def meaning(path):
    """A manifest's content: a changed blank is no damage to it."""
    try:
        return json.loads(path.read_bytes()) if path.suffix == ".json" else path.read_bytes()
    except (OSError, ValueError):
        return None


def test_t2_a_damaged_checkpoint_is_set_aside_and_the_one_before_leads_to_the_same_bits(halfway, tmp_path):
    for case in range(32):
        damage_and_resume(halfway, tmp_path / str(case), case)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_t2_five_hundred_times(halfway, tmp_path):
    for case in range(1000, 1500):
        damage_and_resume(halfway, tmp_path / str(case), case)


def test_t2_when_every_checkpoint_is_damaged_the_training_begins_again(halfway, tmp_path):
    cut, settings, whole = halfway
    shutil.copytree(cut, tmp_path / "run")
    for path in (tmp_path / "run" / "checkpoints").glob("*/state.safetensors"):
        path.write_bytes(b"")
    with pytest.warns(DamagedWarning) as caught:
        train(experiment(max_steps=12, **settings), tmp_path / "run", quiet=True)
    assert len(caught) == 2
    assert fingerprint(tmp_path / "run") == whole


# T3


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with little room, where that can be had; else a limit on the size of files."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True, check=False
        ).returncode
    )
    yield place, mounted
    if mounted:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_t3_a_full_disk_ends_the_training_and_room_lets_it_go_on_to_the_same_bits(small_disk, tmp_path):
    place, mounted = small_disk
    if not mounted:
        pytest.skip("needs to mount a small file system, which takes root; the next test fills the disk in another way")
    settings = {"checkpoint_every": 2, "evaluate_every": 6, "max_steps": 12, "keep_checkpoints": 2}
    train(experiment(**settings), tmp_path / "whole", quiet=True)
    filler = place / "filler"
    refused = 0
    for free in (8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96):  # KiB: each lets it come a little further
        filler.write_bytes(b"")
        filler.write_bytes(bytes(max(0, room(place) - 1024 * free)))
        steps = checkpoint.steps(place / "run" / "checkpoints") if (place / "run" / "checkpoints").exists() else []
        told = attempt(place / "run", settings)
        refused += told is not None
        assert told is None or "No space left" in told
        assert told is None or str(place / "run") in told
        for step in steps[-1:]:  # what was newest is still there, or something newer is
            assert checkpoint.newest(place / "run" / "checkpoints").step >= step
    filler.unlink()
    train(experiment(**settings), place / "run", quiet=True)
    assert refused >= 3
    assert fingerprint(place / "run") == fingerprint(tmp_path / "whole")


def attempt(directory, settings):
    """Train; what it said if it could not."""
    try:
        train(experiment(**settings), directory, quiet=True)
    except (FailedError, RefusedError) as error:
        return str(error)
    return None


def room(place):
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


@pytest.fixture(scope="module")
def six_steps(tmp_path_factory):
    settings = {"checkpoint_every": 2, "evaluate_every": 2, "max_steps": 6}
    whole = tmp_path_factory.mktemp("six") / "whole"
    train(experiment(**settings), whole, quiet=True)
    return settings, fingerprint(whole)


@pytest.mark.parametrize("save", range(1, 21))
def test_t3_every_write_may_be_the_one_that_does_not_fit(tmp_path, monkeypatch, six_steps, save):
    settings, whole = six_steps
    count, put = 0, io._put

    def full(path, data):
        nonlocal count
        count += 1
        if count == save:
            put(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        put(path, data)

    monkeypatch.setattr(io, "_put", full)
    with pytest.raises(FailedError, match=rf"no room to write {tmp_path}/run/.*: it needs [\d,]+ bytes and [\d,]+ are free"):
        train(experiment(**settings), tmp_path / "run", quiet=True)
    monkeypatch.undo()
    assert not list((tmp_path / "run").rglob(".tmp-*"))
    train(experiment(**settings), tmp_path / "run", quiet=True)
    assert fingerprint(tmp_path / "run") == whole


# T4, inside one process


@pytest.mark.parametrize(("number", "code"), [(15, 143), (2, 130)])
def test_t4_a_signal_during_a_step_saves_right_after_it(tmp_path, number, code):
    def asked(model, batch, progress):
        if progress.step == 6:
            os.kill(os.getpid(), number)
        return teacher_forcing_loss(model, batch)

    with pytest.raises(Interrupted) as caught:
        train(replace(experiment(), loss=asked), tmp_path / "run", quiet=True)
    assert caught.value.code == code
    assert checkpoint.newest(tmp_path / "run" / "checkpoints").step == 7
    train(experiment(), tmp_path / "run", quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


@pytest.mark.parametrize("ema", [None, 0.9])
def test_t4_a_signal_during_an_evaluation_does_not_wait_for_it_and_it_is_made_again(tmp_path, ema):
    usual = experiment(ema_decay=ema, schedule="plateau")
    asked = []

    def evaluate(model):
        asked.append(1)
        if len(asked) == 2:
            os.kill(os.getpid(), 15)
            pytest.fail("the evaluation went on")
        return usual.evaluate(model)

    with pytest.raises(Interrupted):
        train(replace(usual, evaluate=evaluate), tmp_path / "run", quiet=True)
    found = checkpoint.newest(tmp_path / "run" / "checkpoints")
    assert (found.step, found.counters["evaluated"]) == (10, 5)
    train(experiment(ema_decay=ema, schedule="plateau"), tmp_path / "run", quiet=True)
    train(experiment(ema_decay=ema, schedule="plateau"), tmp_path / "whole", quiet=True)
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


# T5


def poison(kind, model, loss):
    """A loss that is not finite, or whose gradient is not."""
    if kind == "gradient":  # the square root of nothing: finite itself, and no slope
        return loss._replace(total=loss.total + (model.output.bias.sum() * 0).sqrt())
    factor = {"nan": math.nan, "inf": math.inf, "exploding": 1e38}[kind]
    return loss._replace(total=loss.total * factor)


def bad_at(where, kind, **settings):
    def loss(model, batch, progress):
        found = teacher_forcing_loss(model, batch)
        return poison(kind, model, found) if progress.step in where else found

    return replace(experiment(**settings), loss=loss)


def check_bad(directory, case):
    kind, step = ("nan", "inf", "gradient", "exploding")[case % 4], case * 7 % 12
    settings = {"max_steps": 12, "checkpoint_every": 4, "evaluate_every": 6, "log_every": 4}
    for last in (step // 4 * 4 + 4, 12):
        told = train(bad_at({step}, kind, **{**settings, "max_steps": last}), directory / "cut", quiet=True)
    assert told["skipped"] == 1, kind
    if case % 5 == 0:
        train(bad_at({step}, kind, **settings), directory / "whole", quiet=True)
        assert fingerprint(directory / "whole")["12"] == fingerprint(directory / "cut")["12"]
    for path in directory.rglob("*.safetensors"):
        assert all(value.isfinite().all() for value in load_file(path).values()), (kind, path)


def test_t5_a_batch_that_is_not_a_number_is_skipped_and_counted(tmp_path):
    for case in range(20):
        check_bad(tmp_path / str(case), case)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_t5_two_hundred_times(tmp_path):
    for case in range(200):
        check_bad(tmp_path / str(case), case)


def test_t5_a_skipped_update_leaves_the_weights_alone(tmp_path):
    made = bad_at({0, 1}, "nan", max_steps=2)
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    train(made, tmp_path, quiet=True)
    assert all(torch.equal(value, before[name]) for name, value in made.model.state_dict().items())


def test_t5_too_many_end_the_training_with_its_checkpoint_whole(tmp_path):
    text = r"3 batches had a loss or gradient that is not finite, the last at step 11 \(loss nan per token, gradient nan\)"
    for _ in range(2):  # the count is in the checkpoint: going on ends at the same place
        with pytest.raises(FailedError, match=text):
            train(bad_at({3, 7, 11, 13}, "nan", max_bad_batches=3), tmp_path, quiet=True)
    found = checkpoint.newest(tmp_path / "checkpoints")
    assert (found.step, found.counters["skipped"]) == (10, 2)


# T8


def limited(rows, **settings):
    """An experiment on a device whose memory holds so many sequences."""

    def loss(model, batch, progress):
        if len(batch.source.data) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
        return teacher_forcing_loss(model, batch)

    return replace(experiment(part=Part(dropout=0.0), **settings), loss=loss)


def test_t8_with_too_little_memory_batches_are_cut_and_the_updates_stay_the_same(tmp_path):
    first, second = limited(4, max_steps=8), limited(1, max_steps=8)
    train(first, tmp_path / "whole", quiet=True)
    train(second, tmp_path / "cut", quiet=True)
    assert checkpoint.newest(tmp_path / "cut" / "checkpoints").counters["parts"] == 4
    for left, right in zip(first.model.parameters(), second.model.parameters(), strict=True):
        torch.testing.assert_close(left, right)


def test_t8_a_resumed_training_goes_on_with_the_parts_it_had(tmp_path):
    train(limited(2, max_steps=10), tmp_path / "whole", quiet=True)
    for last in (5, 10):
        train(limited(2, max_steps=last), tmp_path / "cut", quiet=True)
    assert fingerprint(tmp_path / "whole")["10"] == fingerprint(tmp_path / "cut")["10"]


def test_t8_when_one_sequence_is_too_much_the_training_ends_with_advice_and_whole(tmp_path):
    train(limited(4, max_steps=5), tmp_path, quiet=True)
    with pytest.raises(
        FailedError, match=r"out of memory with a single sequence .*data.max_source_length.*model.hidden_size.*bf16"
    ):
        train(limited(0, max_steps=10), tmp_path, quiet=True)
    assert checkpoint.newest(tmp_path / "checkpoints").step == 5


# T9


def test_t9_another_model_in_the_directory_is_refused_by_the_tensor_that_differs(tmp_path):
    train(experiment(), tmp_path, quiet=True)
    with pytest.raises(
        RefusedError, match=r"checkpoints/20 is of another model: embedding.weight has shape \(12, 8\) there"
    ):
        train(experiment(Plain()), tmp_path, quiet=True)

    class More(Network):
        def __init__(self):
            super().__init__()
            self.more = torch.nn.Linear(2, 2)

    with pytest.raises(RefusedError, match=r"it has no more.weight, which this model needs with shape \(2, 2\)"):
        train(experiment(More()), tmp_path, quiet=True)


def test_t9_another_format_is_refused_and_nothing_is_moved(tmp_path):
    train(experiment(), tmp_path, quiet=True)
    path = tmp_path / "checkpoints" / "20" / "manifest.json"
    table = {name: value for name, value in manifest.unseal(path).items() if name not in ("format", "versions")}
    path.write_bytes(manifest.seal({**table, "format": 1}))
    with pytest.raises(RefusedError, match=r"20/manifest.json has format 1, and this version of regard reads format 2"):
        train(experiment(), tmp_path, quiet=True)
    assert path.exists()


def test_t9_a_changed_config_is_refused_by_its_setting_and_the_run_stays_as_it_was(tmp_path):
    train(experiment(), tmp_path, quiet=True)
    before = fingerprint(tmp_path)
    with pytest.raises(RefusedError, match=r"was started with train.seed = 0, and now it is 1"):
        train(experiment(seed=1), tmp_path, quiet=True)
    assert fingerprint(tmp_path) == before


# T10


def test_t10_a_second_training_in_the_same_directory_is_refused_and_the_first_goes_on(tmp_path):
    refused, second = [], experiment()

    def loss(model, batch, progress):
        if progress.step == 3:
            with pytest.raises(RefusedError, match=f"is in use by process {os.getpid()}"):
                train(second, tmp_path / "run", quiet=True)
            refused.append(1)
        return teacher_forcing_loss(model, batch)

    train(replace(experiment(), loss=loss), tmp_path / "run", quiet=True)
    train(experiment(), tmp_path / "whole", quiet=True)
    assert refused == [1]
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")
