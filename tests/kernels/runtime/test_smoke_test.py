import os

import pytest

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("this runs in the interpreter; on a GPU every kernel asks for it first", allow_module_level=True)

from regard.kernels.runtime import smoke_test


def test_it_starts_with_one_program(monkeypatch):
    started = []
    program = smoke_test.empty_kernel
    monkeypatch.setattr(smoke_test, "empty_kernel", {(1,): lambda given: started.append(given) or program[(1,)](given)})
    smoke_test.launch_empty_kernel()
    assert started == [2]
