"""Node.js for tests of the page's sources: whoever installs the package needs none."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

VIEWER = Path(__file__).parents[2] / "viewer"
MISSING = "the page's sources are not tested: no npm on the path; it is Debian's package npm, with nodejs"


def modules() -> Path:
    """viewer/node_modules, fetched on first use; without npm the test is skipped, or fails where CI=true."""
    if shutil.which("npm") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(MISSING)
    with (VIEWER / "package.json").open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # the tests run in several processes, and one fetches for all
        make = subprocess.run(["make", "viewer/node_modules/.ready"], cwd=VIEWER.parent, capture_output=True, text=True)
    assert make.returncode == 0, make.stdout + make.stderr
    return VIEWER / "node_modules"


def npm(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run one of the viewer's own scripts."""
    modules()
    return subprocess.run(["npm", "run", "--silent", *arguments], cwd=VIEWER, capture_output=True, text=True, **options)
