import os
import stat
from pathlib import Path

import pytest

from regard import user_cache
from regard.decoding.engines.cpp import build as file
from regard.decoding.engines.cpp.build import (
    UnavailableError,
    compile_library,
    compute_cache_key,
    describe_processor,
    list_sources,
    load_library,
)
from regard.user_cache import cache_folder, is_private

RUNS = 'extern "C" int regard_trial() { return 0; }\n'


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A source of our own, which is compiled sooner."""
    (tmp_path / "one.cpp").write_text(RUNS)
    monkeypatch.setattr(file, "HERE", tmp_path)
    return tmp_path / "one.cpp"


def test_it_is_made_and_loaded_once():
    assert load_library() is load_library()
    assert load_library().regard_trial() == 0


def test_what_was_compiled_appears_whole_and_under_its_own_name(code, tmp_path):
    path = tmp_path / f"{compute_cache_key()}.so"
    compile_library(path)
    assert [each.name for each in tmp_path.iterdir() if each != code] == [path.name]


def test_other_sources_and_other_processors_have_another_name(code, monkeypatch):
    first = compute_cache_key()
    code.write_text(RUNS + "// more\n")
    second = compute_cache_key()
    monkeypatch.setattr(file, "describe_processor", lambda: "another")
    assert len({first, second, compute_cache_key()}) == 3


def test_the_processor_is_told_where_the_system_tells_nothing(monkeypatch):
    told = describe_processor()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: (_ for _ in ()).throw(OSError()))
    assert describe_processor() == told[: len(describe_processor())]


def test_the_sources_are_those_beside_it():
    assert {"simd.hpp", "search.cpp"} < {each.name for each in list_sources()}


def test_without_a_compiler_it_says_which_were_looked_for(code, tmp_path, monkeypatch):
    monkeypatch.setattr(file.shutil, "which", lambda _: None)
    wanted = r"there is no C\+\+ compiler: neither CXX names one nor is there c\+\+, g\+\+, clang\+\+; install one"
    with pytest.raises(UnavailableError, match=wanted):
        compile_library(tmp_path / "some.so")


def test_what_does_not_compile_is_told_in_the_compilers_words(code, tmp_path):
    code.write_text("this is no C++\n")
    with pytest.raises(UnavailableError, match=r"could not compile the engine: .*one\.cpp"):
        compile_library(tmp_path / "some.so")
    assert not list(tmp_path.glob("*.so"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return 1;", r"does not run here \(exit code 1\): its sums are wrong, or the processor"),
        ("__builtin_trap();", r"does not run here \(exit code -\d+\): its sums are wrong, or the processor"),
    ],
)
def test_what_does_not_run_is_tried_in_another_process_and_thrown_away(code, tmp_path, body, reason):
    code.write_text(f'extern "C" int regard_trial() {{ {body} }}\n')
    with pytest.raises(UnavailableError, match=reason):
        compile_library(tmp_path / "some.so")
    assert not list(tmp_path.glob("*.so"))


def test_a_compiler_that_knows_no_threads_compiles_without(code, tmp_path, monkeypatch):
    monkeypatch.setattr(file, "THREADS", ("-fno-such-option",))
    compile_library(tmp_path / "some.so")
    assert (tmp_path / "some.so").is_file()


@pytest.fixture
def cached(code, tmp_path, monkeypatch):
    """The place of a library that was compiled from the small source and is loaded next."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(file, "declare_functions", lambda found: None)
    path = cache_folder("compiled") / f"{compute_cache_key()}.so"
    compile_library(path)
    return path


def test_what_was_compiled_is_the_users_alone_whatever_the_umask(cached):
    before = os.umask(0)
    try:
        compile_library(cached)
    finally:
        os.umask(before)
    assert stat.S_IMODE(cached.stat().st_mode) == 0o700


@pytest.mark.parametrize("how", ["others can write it", "it is a link"])
def test_a_library_that_somebody_else_may_have_put_there_is_compiled_anew_and_never_loaded(cached, how, monkeypatch):
    planted, real = cached.with_name("planted.so"), cached.read_bytes()
    planted.write_bytes(b"planted")
    if how == "it is a link":
        cached.unlink()
        cached.symlink_to(planted)
    else:
        cached.write_bytes(b"planted")
        cached.chmod(0o777)
    assert load_library.__wrapped__().regard_trial() == 0
    assert cached.read_bytes()[:4] == real[:4]
    assert planted.read_bytes() == b"planted"
    assert is_private(cached)


@pytest.mark.parametrize("size", [0, 31, 32, 1000, -1])
def test_a_library_that_was_cut_off_is_compiled_anew_instead_of_killing_the_process(cached, size):
    whole = cached.read_bytes()
    cached.write_bytes(whole[:size])
    assert load_library.__wrapped__().regard_trial() == 0
    assert len(cached.read_bytes()) == len(whole)


def test_a_library_with_a_changed_byte_is_compiled_anew(cached):
    whole = bytearray(cached.read_bytes())
    whole[len(whole) // 2] ^= 1
    cached.write_bytes(whole)
    assert load_library.__wrapped__().regard_trial() == 0
    assert cached.read_bytes() != bytes(whole)


def test_a_library_is_never_loaded_from_a_folder_that_others_can_write(cached):
    cached.parent.chmod(0o777)
    user_cache._warn.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"the user's cache is not used: other users can write .*compiled \(mode 777"):
        assert Path(load_library.__wrapped__()._name).parent == user_cache.temporary_folder() / "compiled"
    user_cache._warn.cache_clear()


def test_the_trial_imports_nothing_from_the_current_folder(code, tmp_path, monkeypatch):
    (tmp_path / "ctypes.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    monkeypatch.chdir(tmp_path)
    compile_library(tmp_path / "some.so")
    assert not (tmp_path / "ran").exists()
