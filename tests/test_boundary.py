import pytest

from regard.boundary import boundary
from regard.errors import ConfigError, DamagedError, DataError, FailedError, RefusedError


@pytest.mark.parametrize(
    "error",
    [
        *(KeyError("x"), ValueError("x"), TypeError("x"), OverflowError("x"), RecursionError("x"), AttributeError("x")),
        *(UnicodeDecodeError("utf-8", b"", 0, 1, "x"), IndexError("x"), OSError(5, "x"), AssertionError("x")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_falls_while_a_file_is_read_is_damage_that_names_it_and_keeps_the_error(error):
    with (
        pytest.raises(DamagedError, match=rf"^run/file cannot be opened, .*: {type(error).__name__}: ") as caught,
        boundary("run/file"),
    ):
        raise error
    assert caught.value.__cause__ is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [ConfigError, DataError, DamagedError, RefusedError, FailedError, ImportError, UserWarning])
def test_errors_that_say_what_to_do_are_left_alone(kind):
    with pytest.raises(kind, match=r"^as it was$"), boundary("run"):
        raise kind("as it was")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_whoever_stops_the_program_stops_it(kind):
    with pytest.raises(kind), boundary("run"):
        raise kind


def test_an_unknown_name_is_told_with_the_nearest():
    with (
        pytest.raises(RefusedError, match=r"^run cannot be opened: no task is called 'x'; did you mean 'y'\?$"),
        boundary("run"),
    ):
        raise LookupError("no task is called 'x'; did you mean 'y'?")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes")]
)
def test_too_little_memory_is_no_damage(error):
    with (
        pytest.raises(RefusedError, match=r"^run needs more memory than there is: open it on a larger machine$"),
        boundary("run"),
    ):
        raise error


def test_a_panic_of_a_library_in_rust_is_damage():
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    with pytest.raises(DamagedError, match="PanicException: index out of bounds"), boundary("run"):
        raise panic("index out of bounds")


def test_a_long_text_is_cut():
    with pytest.raises(DamagedError) as caught, boundary("run"):
        raise ValueError("x" * 10_000 + "\n" + "y")
    assert len(str(caught.value)) < 1000
