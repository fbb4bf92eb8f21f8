"""Children here are small programs of Python, so that a training's ways to end can be had at will."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from regard.compare.progress import Lines
from regard.compare.workers import Job, describe_failure, run_jobs, threads
from regard.errors import Interrupted

CHILD = "import json, os, signal, sys, time\nfrom pathlib import Path\ngiven = json.loads(sys.stdin.readline())\n"


def told(body, requests, at_once=2):
    """What is told of each job, by name, when children run `body`."""
    ended = {}
    jobs = [Job(name, request) for name, request in requests.items()]
    command = [sys.executable, "-S", "-c", CHILD + body]
    run_jobs(jobs, at_once, Lines(len(jobs), None), lambda job, reason: ended.update({job.name: reason}), command)
    return ended


def test_one_that_fails_fails_alone_with_its_own_words():
    body = "print('step 1', file=sys.stderr)\nif given: print('regard: no room', file=sys.stderr); sys.exit(2)"
    assert told(body, {"a": {}, "b": {"fail": 1}, "c": {}}) == {"a": None, "b": "no room", "c": None}


def test_one_that_is_killed_is_told_from_one_that_failed():
    body = "os.kill(os.getpid(), given['signal'])"
    found = told(body, {"kill": {"signal": 9}, "abort": {"signal": 6}})
    assert found == {
        "kill": "killed from outside (SIGKILL), as a machine does that runs out of memory; try fewer --jobs",
        "abort": "ended by SIGABRT",
    }


def test_a_child_without_words_of_ours_is_quoted_as_it_ended():
    assert describe_failure(1, ["Traceback", "ImportError: no torch"]) == "ImportError: no torch"
    assert describe_failure(3, []) == "ended with code 3 and said nothing"
    assert describe_failure(1, ["regard: a warning", "regard: the error", "leaked semaphores"]) == "the error"


def test_a_child_that_never_reads_its_request_is_not_waited_for():
    ended = []
    job = Job("a", {"long": "x" * 1_000_000})
    run_jobs(
        [job], 1, Lines(1, None), lambda _, reason: ended.append(reason), [sys.executable, "-S", "-c", "raise SystemExit(3)"]
    )
    assert ended == ["ended with code 3 and said nothing"]


def test_no_more_are_at_work_than_asked_for(tmp_path):
    body = (
        "here = Path(given['folder']); mine = here / given['name']; mine.touch()\n"
        "seen = len(list(here.glob('*.at'))); time.sleep(0.15); mine.unlink()\n"
        "(here / (given['name'] + '.seen')).write_text(str(seen))"
    )
    requests = {str(number): {"folder": str(tmp_path), "name": f"{number}.at"} for number in range(5)}
    assert set(told(body, requests, at_once=2).values()) == {None}
    seen = [int(path.read_text()) for path in tmp_path.glob("*.seen")]
    assert len(seen) == 5
    assert max(seen) <= 2


def test_children_share_the_cores_unless_the_user_says_how(tmp_path, monkeypatch):
    body = "Path(given['to']).write_text(os.environ['OMP_NUM_THREADS'])"
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert [threads(n) for n in (1, 3, 16)] == [8, 2, 1]
    told(body, {"a": {"to": str(tmp_path / "a")}}, at_once=4)
    assert (tmp_path / "a").read_text() == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    told(body, {"a": {"to": str(tmp_path / "a")}}, at_once=4)
    assert (tmp_path / "a").read_text() == "3"


def test_a_signal_stops_all_children_which_save_themselves_and_nothing_begins_after_it(tmp_path):
    body = (
        "here = Path(given['here'])\n"
        "def stop(*_): here.with_suffix('.saved').touch(); sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, stop); signal.signal(signal.SIGINT, signal.SIG_DFL); here.touch(); time.sleep(30)"
    )
    requests = {name: {"here": str(tmp_path / name)} for name in "abc"}

    def interrupt():
        end = time.monotonic() + 20
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted) as raised:
        told(body, requests, at_once=2)
    thread.join()
    assert raised.value.code == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.saved", "b", "b.saved"]


def test_a_child_whose_parent_is_gone_saves_itself_as_if_it_were_told_to(tmp_path):
    body = (
        "import signal, sys, time\nfrom pathlib import Path\nfrom regard.compare.workers import read_request\ngiven = read_request()\n"
        "def stop(*_): print('saving', file=sys.stderr, flush=True); Path(given['saved']).touch(); sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, stop)\nprint('ready', file=sys.stderr, flush=True)\ntime.sleep(30)"
    )
    child = subprocess.Popen([sys.executable, "-c", body], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdin.write(json.dumps({"saved": str(tmp_path / "saved")}) + "\n")
    child.stdin.flush()
    assert child.stderr.readline() == "ready\n"
    child.stderr.close()
    child.stdin.close()
    assert child.wait(timeout=20) == 143
    assert (tmp_path / "saved").exists()
