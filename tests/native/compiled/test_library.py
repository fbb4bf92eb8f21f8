import os
import stat
from pathlib import Path

import pytest

from regard.native.compiled import library as file
from regard.native.compiled.library import UnavailableError, folder, key, library, make, processor, sources

RUNS = 'extern "C" int regard_trial() { return 0; }\n'


@pytest.fixture
def code(tmp_path, monkeypatch):
    """A source of our own, which is compiled sooner."""
    (tmp_path / "one.cpp").write_text(RUNS)
    monkeypatch.setattr(file, "HERE", tmp_path)
    return tmp_path / "one.cpp"


def test_it_is_made_and_loaded_once():
    assert library() is library()
    assert library().regard_trial() == 0


def test_what_was_compiled_appears_whole_and_under_its_own_name(code, tmp_path):
    path = tmp_path / f"{key()}.so"
    make(path)
    assert [each.name for each in tmp_path.iterdir() if each != code] == [path.name]


def test_other_sources_and_other_processors_have_another_name(code, monkeypatch):
    first = key()
    code.write_text(RUNS + "// more\n")
    second = key()
    monkeypatch.setattr(file, "processor", lambda: "another")
    assert len({first, second, key()}) == 3


def test_the_processor_is_told_where_the_system_tells_nothing(monkeypatch):
    told = processor()
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: (_ for _ in ()).throw(OSError()))
    assert processor() == told[: len(processor())]


def test_the_sources_are_those_beside_it():
    assert {"lanes.hpp", "search.cpp"} < {each.name for each in sources()}


def test_without_a_compiler_it_says_which_were_looked_for(code, tmp_path, monkeypatch):
    monkeypatch.setattr(file.shutil, "which", lambda _: None)
    wanted = r"there is no C\+\+ compiler: neither CXX names one nor is there c\+\+, g\+\+, clang\+\+; install one"
    with pytest.raises(UnavailableError, match=wanted):
        make(tmp_path / "some.so")


def test_what_does_not_compile_is_told_in_the_compilers_words(code, tmp_path):
    code.write_text("this is no C++\n")
    with pytest.raises(UnavailableError, match=r"could not compile the engine: .*one\.cpp"):
        make(tmp_path / "some.so")
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
        make(tmp_path / "some.so")
    assert not list(tmp_path.glob("*.so"))


def test_a_compiler_that_knows_no_threads_compiles_without(code, tmp_path, monkeypatch):
    monkeypatch.setattr(file, "THREADS", ("-fno-such-option",))
    make(tmp_path / "some.so")
    assert (tmp_path / "some.so").is_file()


def test_it_is_kept_for_its_user_alone_and_else_among_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "regard" / "compiled"
    assert stat.S_IMODE(folder().stat().st_mode) & 0o077 == 0
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder() == tmp_path / ".cache" / "regard" / "compiled"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert folder().name.startswith("regard-")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert folder() == file.temporary()
