import torch
from torch.testing import assert_close

from regard.tasks.anomaly.memory import WindowMemory

from .test_baselines import source

WINDOWS = torch.tensor([[0.0, 0], [1, 1], [4, 4]])


def build(width=1e-3):
    memory = WindowMemory(5, 2, 1)
    memory.fit(WINDOWS, torch.tensor([2, 3, 9]))
    with torch.no_grad():
        memory.log_width.fill_(torch.tensor(width).log())
    return memory


def test_a_narrow_memory_expects_the_nearest_window():
    expected, _ = build()(source([[0.9, 1.2], [3, 3]]))
    assert_close(expected[..., 0], torch.tensor([[1.0, 1], [4, 4]]))


def test_weights_are_a_gaussian_kernel_of_the_distance():
    expected, weights = build(2.0)(source([[1.0, 2]]), weights=True)
    distances = (WINDOWS - torch.tensor([1.0, 2])).square().mean(1)
    assert_close(weights[0, 0, 0, :3], torch.softmax(-distances / 2, 0))
    assert weights[0, 0, 0, 3:].abs().max() == 0
    assert_close(expected[0, :, 0], torch.softmax(-distances / 2, 0) @ WINDOWS)


def test_a_training_window_is_expected_from_those_that_do_not_overlap_with_it():
    expected, weights = build()(source([[1.0, 1]]), torch.tensor([3]), weights=True)
    assert weights[0, 0, 0].nonzero().flatten().tolist() == [2]
    assert_close(expected[..., 0], torch.tensor([[4.0, 4]]))


def test_the_width_is_learned():
    memory = build(1.0)
    expected, _ = memory(source([[0.1, 0.0], [3.9, 4.1]]))
    (expected - source([[0.1, 0.0], [3.9, 4.1]]).data).square().sum().backward()
    assert memory.log_width.grad > 0


def test_a_full_memory_has_windows_from_all_of_the_training():
    memory = WindowMemory(3, 1, 1)
    memory.fit(torch.arange(101.0)[:, None], torch.arange(101))
    assert memory.windows.flatten().tolist() == [0, 50, 100]
