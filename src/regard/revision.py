"""Revision of the package: its version, and the git commit that it was built from or runs from."""

import subprocess
from pathlib import Path

STAMP = Path(__file__).with_name("commit.txt")
"""File that hatch_build.py writes into a wheel and an sdist."""


def find_commit() -> str | None:
    """The git commit of a checkout, or of what was built; None where neither is known."""
    checkout = STAMP.parents[2]
    if (checkout / ".git").exists() and (checkout / "pyproject.toml").is_file():
        return read_head(checkout)
    try:
        return STAMP.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def read_head(checkout: Path) -> str | None:
    """The short hash of the commit that is checked out; None without git."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def describe_version(version: str) -> str:
    """regard 0.2.0 (commit 1a2b3c4d5e6f), or the version alone."""
    commit = find_commit()
    return f"regard {version}" + (f" (commit {commit})" if commit else "")
