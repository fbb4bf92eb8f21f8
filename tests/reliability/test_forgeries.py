"""Damaged and forged models: each is opened as it was, or refused in one sentence that names it, in bounded time and memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unhooked

CASES = 3250
"""Ways of damage and forgery that forging.py lists; it opens every one of them in the soak."""
EACH = 100
"""Every so many of them are opened by `make test`."""


def forge(home: Path, share: int) -> dict:
    script = Path(__file__).with_name("forging.py")
    done = subprocess.run([sys.executable, str(script), str(home), str(share)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_few_damaged_and_forged_models_are_refused_or_right(tmp_path):
    counts = forge(tmp_path / "forged", EACH)
    assert counts["fell"] == []
    assert counts["all"] >= CASES
    assert counts["cases"] >= 20


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_every_damaged_or_forged_model_is_refused_or_right(tmp_path):
    counts = forge(tmp_path / "forged", 1)
    assert counts["fell"] == []
    assert counts["cases"] >= CASES
