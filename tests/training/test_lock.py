import os
import time

import pytest

from regard.errors import RefusedError
from regard.training.lock import Lock, wait_until_free


def test_the_second_to_come_is_refused_and_told_who_holds_it(tmp_path):
    with (
        Lock(tmp_path),
        pytest.raises(RefusedError, match=f"{tmp_path} is in use by process {os.getpid()}: wait for it, or choose"),
        Lock(tmp_path),
    ):
        pass
    with Lock(tmp_path):
        pass


def test_a_lock_that_cannot_be_written_is_not_kept(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"), Lock(tmp_path):
        pass
    monkeypatch.undo()
    with Lock(tmp_path):
        pass


def test_the_lock_vanishes_with_a_killed_process(tmp_path):
    ready, tell = os.pipe()
    child = os.fork()
    if not child:
        with Lock(tmp_path):
            os.write(tell, b"x")
            os.read(os.pipe()[0], 1)
        os._exit(0)
    os.read(ready, 1)
    with pytest.raises(RefusedError, match=f"process {child}"), Lock(tmp_path):
        pass
    os.kill(child, 9)
    os.waitpid(child, 0)
    with Lock(tmp_path):
        pass


def test_a_link_under_its_name_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("mine")
    (tmp_path / ".lock").symlink_to("victim")
    with pytest.raises(OSError, match="Too many levels of symbolic links"), Lock(tmp_path):
        pass
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_lock_is_waited_for_until_it_is_given_up_and_no_longer_than_asked(tmp_path):
    wait_until_free(tmp_path / "nowhere", 60.0)
    with Lock(tmp_path):
        begun = time.monotonic()
        wait_until_free(tmp_path, 0.15)
        assert 0.1 < time.monotonic() - begun < 30
    begun = time.monotonic()
    wait_until_free(tmp_path, 60.0)
    with Lock(tmp_path):
        assert time.monotonic() - begun < 30
