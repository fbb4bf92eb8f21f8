import os
import shutil

from regard.cli._terminal import NARROWEST, find_width, wrap


def test_a_pipe_has_no_width_and_columns_give_one(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout", None)
    assert find_width() is None
    monkeypatch.setenv("COLUMNS", "72")
    assert find_width() == 72
    monkeypatch.setenv("COLUMNS", "3")
    assert find_width() == NARROWEST


def test_a_terminal_has_its_width(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((100, 30)))
    assert find_width() == 100


def test_lines_after_the_first_hang():
    assert wrap("one two three four", 9, indent="> ", hanging="  ") == "> one two\n  three\n  four"
    assert wrap("a-very-long-word", 8) == "a-very-long-word"
    assert wrap("one two three", None, indent="> ") == "> one two three"
