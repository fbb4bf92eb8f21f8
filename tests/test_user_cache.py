import getpass
import os
import stat
import subprocess
import sys
import tempfile

import pytest

from regard import user_cache
from regard.user_cache import (
    INDUCTOR,
    TRITON,
    cache_folder,
    is_private,
    set_compiler_cache,
    set_kernel_cache,
    temporary_folder,
)


@pytest.fixture(autouse=True)
def _afresh(monkeypatch, tmp_path):
    """No warning has been given, and the user's caches are below a folder of the test."""
    user_cache._warn.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(INDUCTOR, raising=False)
    yield
    user_cache._warn.cache_clear()


def test_it_is_below_xdg_cache_home_or_else_the_home_folder(tmp_path, monkeypatch):
    assert cache_folder("compiled") == tmp_path / "regard" / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("compiled") == tmp_path / ".cache" / "regard" / "compiled"


def test_its_folders_are_the_users_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        folder = cache_folder("compiled")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder.parent)] == [0o700, 0o700]


def elsewhere(why):
    """Assert that the cache is refused for this reason, and that a folder which goes with the program takes its place."""
    with pytest.warns(RuntimeWarning, match=rf"the user's cache is not used: {why}\. What is compiled or exported now"):
        folder = cache_folder("compiled")
    assert folder == temporary_folder() / "compiled"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_folder("compiled") == folder  # and nothing is said again: a warning would be an error here


@pytest.mark.parametrize("place", [".", "regard", "regard/compiled"])
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_a_folder_that_others_can_write_is_refused(tmp_path, place, mode):
    cache_folder("compiled")
    (tmp_path / place).chmod(mode)
    elsewhere(rf"other users can write .* \(mode {mode:o}; chmod go-w mends that\)")


def test_the_root_of_all_caches_may_be_sticky_and_a_link_and_no_folder_below_it(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "real").chmod(0o1777)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert cache_folder("compiled") == tmp_path / "link" / "regard" / "compiled"
    cache_folder("compiled").chmod(0o1777)
    elsewhere(r"other users can write .*compiled \(mode 1777; chmod go-w mends that\)")


@pytest.mark.parametrize("place", ["regard", "regard/compiled"])
def test_a_folder_that_is_a_link_is_refused(tmp_path, place):
    (tmp_path / "planted").mkdir()
    (tmp_path / place).parent.mkdir(exist_ok=True, mode=0o700)
    (tmp_path / place).symlink_to(tmp_path / "planted")
    elsewhere(rf".*{place} is a symbolic link")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("place", [".", "regard", "regard/compiled"])
def test_a_folder_of_another_user_is_refused(tmp_path, place):
    cache_folder("compiled")
    os.chown(tmp_path / place, 12345, 12345)
    elsewhere(r".* belongs to another user \(uid 12345\)")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_below_one_of_another_user_is_refused(tmp_path, monkeypatch):
    above = tmp_path / "shared"
    above.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(above / "mine" / "cache"))
    assert cache_folder("compiled").is_dir()
    os.chown(above, 12345, 12345)
    elsewhere(r".*shared belongs to another user \(uid 12345\)")


@pytest.mark.parametrize(("mode", "good"), [(0o777, False), (0o770, False), (0o1777, True), (0o755, True)])
def test_a_folder_below_one_that_others_can_write_is_refused_unless_that_is_sticky(tmp_path, monkeypatch, mode, good):
    above = tmp_path / "shared"
    above.mkdir()
    above.chmod(mode)
    monkeypatch.setenv("XDG_CACHE_HOME", str(above / "mine"))
    if good:
        assert cache_folder("compiled") == above / "mine" / "regard" / "compiled"
    else:
        elsewhere(rf"other users can write .*shared \(mode {mode:o}; chmod go-w mends that\)")


def test_folders_above_the_home_folder_are_the_systems(tmp_path, monkeypatch):
    home = tmp_path / "shared" / "home"
    home.mkdir(parents=True)
    home.parent.chmod(0o777)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder("compiled") == home / ".cache" / "regard" / "compiled"
    home.chmod(0o777)
    elsewhere(r"other users can write .*home \(mode 777; chmod go-w mends that\)")


@pytest.mark.parametrize("cache", ["model", "model/cache", "model/checkpoints/1/cache"])
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_a_folder_in_a_model_directory_is_refused(tmp_path, monkeypatch, cache, variable):
    (tmp_path / cache).mkdir(parents=True)
    (tmp_path / "model" / "manifest.json").write_text("{}")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv(variable, str(tmp_path / cache))
    elsewhere(r".* lies in .*model, which has a manifest.json as model directories do")


def test_what_cannot_be_made_or_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "regard").write_text("a file in the way")
    elsewhere(r".*regard cannot be used \(File exists\)")
    (tmp_path / "regard").unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)
    elsewhere(r".*compiled cannot be written")


def test_without_a_home_folder_it_is_temporary(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    elsewhere("there is no home folder")


def test_a_temporary_folder_goes_with_the_program(tmp_path):
    program = "import regard.user_cache as file; print(file.temporary_folder())"
    folder = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert "regard-" in folder
    assert not os.path.exists(folder)


def test_a_file_is_private_where_nobody_else_can_write_it(tmp_path):
    file = tmp_path / "file"
    file.write_text("code")
    file.chmod(0o755)
    assert is_private(file)
    file.chmod(0o775)
    assert not is_private(file)
    file.chmod(0o700)
    (tmp_path / "link").symlink_to(file)
    assert not is_private(tmp_path / "link")


def test_the_compilers_cache_is_the_users_unless_the_user_has_chosen_another(tmp_path, monkeypatch):
    set_compiler_cache()
    assert os.environ[INDUCTOR] == str(tmp_path / "regard" / "inductor")
    monkeypatch.setenv(INDUCTOR, "elsewhere")
    set_compiler_cache()
    assert os.environ[INDUCTOR] == "elsewhere"
    for shared in (
        "",
        f"{tempfile.gettempdir()}/torchinductor_{getpass.getuser()}",
    ):  # the current folder, and one that any user can make beforehand
        monkeypatch.setenv(INDUCTOR, shared)
        set_compiler_cache()
        assert os.environ[INDUCTOR] == str(tmp_path / "regard" / "inductor")


def test_tritons_cache_is_the_users_unless_the_user_has_chosen_another(tmp_path, monkeypatch):
    for name in TRITON:
        monkeypatch.setenv(name, "")
    set_kernel_cache()
    assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "regard" / "triton")
    assert stat.S_IMODE((tmp_path / "regard" / "triton").stat().st_mode) == 0o700
    for name in TRITON:
        monkeypatch.setenv("TRITON_CACHE_DIR", "")
        monkeypatch.setenv(name, "elsewhere")
        set_kernel_cache()
        assert os.environ["TRITON_CACHE_DIR"] == ("" if name == "TRITON_HOME" else "elsewhere")


def test_pytorch_and_triton_take_the_cache_that_is_set(tmp_path, monkeypatch):
    from torch._inductor.runtime.cache_dir_utils import cache_dir, triton_cache_dir

    monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
    set_compiler_cache()
    assert cache_dir() == str(tmp_path / "regard" / "inductor")
    assert triton_cache_dir(0) == str(tmp_path / "regard" / "inductor" / "triton" / "0")


def test_nothing_heavy_is_imported_for_it():
    program = "import sys, regard.user_cache; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
