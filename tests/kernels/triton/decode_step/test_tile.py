import torch

from regard.kernels.triton.decode_step.tile import build_launch_options, select_tile, supports_pdl, use_device


def test_more_keys_are_more_warps_up_to_a_point():
    assert [select_tile(keys) for keys in (5, 16, 33, 128, 4096)] == [(16, 1), (16, 1), (64, 2), (128, 4), (128, 4)]


def test_larger_heads_are_fewer_keys_at_once():
    assert [select_tile(4096, size).keys for size in (8, 64, 65, 128, 256)] == [128, 128, 64, 64, 32]


def test_on_a_cpu_there_is_nowhere_to_go():
    with use_device(torch.ones(1)) as where:
        assert where is None


def test_a_kernel_begins_early_where_the_gpu_can(monkeypatch):
    for capability, can in (((8, 9), False), ((9, 0), True), ((12, 0), True)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, known=capability: known)
        assert supports_pdl(torch.device("cuda")) is can
    assert not supports_pdl(torch.device("cpu"))


def test_only_a_launch_that_begins_early_says_so():
    assert build_launch_options(False) == {"EARLY": False}
    assert build_launch_options(True) == {"EARLY": True, "launch_pdl": True}
