"""The code in the README.md of an export, run by a Python that has neither regard nor what it is made of."""

import re
import subprocess
import sys
from pathlib import Path

BARE = "import sys\nsys.path = [each for each in sys.path if each]\nfor name in {hidden!r}: sys.modules[name] = None\n"
HIDDEN = ("regard", "torch", "transformers", "sentencepiece", "safetensors")


def code(directory: Path) -> str:
    """The one block of Python in the page."""
    [block] = re.findall(r"```python\n(.*?)```", (directory / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    return str(block)


def run(
    directory: Path, *arguments: str, more: str = "", hidden: tuple[str, ...] = HIDDEN
) -> subprocess.CompletedProcess[str]:
    """Run the code in its directory, with further lines behind it."""
    program = f"{BARE.format(hidden=hidden)}{code(directory)}\n{more}"
    command = [sys.executable, "-X", "utf8", "-c", program, *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False)


def answers(directory: Path, *sources: str, **options: tuple[str, ...]) -> list[str]:
    """What the code prints for some sources."""
    done = run(directory, *sources, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
