"""Every task, `compare` and `align` are killed at random instants, and end as if nothing had happened."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard import registry

pytestmark = pytest.mark.unhooked  # whole commands, whose shapes the tests of their parts check
SCRIPT = Path(__file__).with_name("kills.py")
CASES = [*registry.names("tasks"), "compare", "align"]


def killed(directory, kills, seed, limit):
    """Run kills.py. oneDNN is kept from AMX, which some virtual machines announce and do not have."""
    surroundings = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), str(directory), str(kills), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=surroundings, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    return killed(tmp_path_factory.mktemp("kills"), kills=2, seed=1, limit=110)


def check(count, kills):
    assert count["differ"] == []
    assert count["kills"] == kills
    assert count["runs"] == count["equal"] > 0


@pytest.mark.parametrize("case", CASES)
def test_a_command_killed_at_any_instant_ends_with_the_same_bits(counts, case):
    check(counts[case], 2)


def test_pictures_and_texts_are_both_among_the_tasks():
    from regard import tasks

    families = {tasks.find(name).Config.FAMILY for name in registry.names("tasks")}
    assert {"regard.tasks.kinds.text", "regard.tasks.classify.experiment"} <= families


@pytest.mark.soak
@pytest.mark.timeout(2000)
def test_hundreds_of_kills_of_every_task_and_command(tmp_path):
    counts = killed(tmp_path, kills=30, seed=2, limit=1900)
    assert sorted(counts) == sorted(CASES)
    for count in counts.values():
        check(count, 30)
