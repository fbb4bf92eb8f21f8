"""Every program of attention through Triton's own compiler, which refuses what its interpreter lets pass."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is for Linux")
ROOM = Path(__file__).parents[2] / "benchmarks" / "room.py"
PROGRAMS = {
    "flash": {
        "forward",
        "find_next_top",
        "sum_columns",
        "count_keys",
        "sum_uniform",
        "write_dq",
        "write_dkv",
        "write_dbias",
    },
    "weights": {"forward", "weights_kernel"},
    "short": {"forward", "backward"},
    "predicted_window": {"count_kernel", "order_kernel", "forward", "write_dq", "write_dkv"},
    "entmax": {"forward", "write_dq", "write_dkv"},
    "decode": {"split_kernel", "join_kernel"},
    "monotonic": {"forward", "backward"},
    "additive": {
        "transpose_kernel",
        "exponentials_kernel",
        "compare_kernel",
        "read_kernel",
        "write_dscores",
        "backward_kernel",
        "split_kernel",
        "trace_kernel",
    },
}


@pytest.mark.unhooked
@pytest.mark.timeout(300)
def test_all_programs_are_compiled_for_a_gpu_that_is_not_there():
    told = [sys.executable, str(ROOM), "--chips", "90", "--kinds", "bfloat16", "--sizes", "64"]
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = dict.fromkeys(PROGRAMS, frozenset[str]())
    for line in done.stdout.splitlines():
        if not line.startswith(" "):
            kernel = line.split()[-1]
        else:
            found[kernel] |= {line.split()[0]}
    assert found == PROGRAMS
