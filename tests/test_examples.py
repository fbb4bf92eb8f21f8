"""The examples run, on fewer steps than a user would take."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_training_in_python_takes_twenty_lines_and_works():
    script = EXAMPLES / "train_in_python.py"
    code = [
        line
        for line in script.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("import", "from", '"""'))
    ]
    assert len(code) <= 20
    done = subprocess.run([sys.executable, str(script), "3"], capture_output=True, text=True, timeout=110, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "3,600 of 3,600 records" in done.stdout
    assert done.stdout.splitlines()[3].split()[-4:] == ["Tom", "chases", "Jerry", "<eos>"]


def test_the_recipe_of_multi30k_names_its_models():
    done = subprocess.run(
        ["bash", str(EXAMPLES / "multi30k.sh"), "huge", "out"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "REGARD_DATA": "x"},
    )
    assert done.returncode == 2
    assert "none, additive or transformer" in done.stderr
