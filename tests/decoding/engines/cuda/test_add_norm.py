import torch

from regard.decoding.engines.cuda import add_norm as file
from regard.decoding.engines.cuda.add_norm import add_norm


def test_it_is_the_sum_and_the_layer_norm_of_it():
    data, found = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 1.0]])
    total, normed = add_norm(data, found, torch.tensor([2.0, 2.0]), torch.tensor([0.5, 0.5]), 0.0)
    assert total.tolist() == [[1.0, 3.0]]
    assert normed.tolist() == [[-1.5, 2.5]]


def test_without_triton_there_is_no_kernel(monkeypatch):
    monkeypatch.setattr(file, "find_spec", lambda name: None)
    file.load_kernel.cache_clear()
    assert file.load_kernel() is None
    file.load_kernel.cache_clear()


def test_a_gpu_that_lacks_something_takes_the_steps(monkeypatch):
    class Pretending(torch.Tensor):
        is_cuda = True

    monkeypatch.setattr(file.capability, "find_obstacle", lambda device, dtype: "needs another GPU")
    monkeypatch.setattr(file, "load_kernel", None)
    data = torch.tensor([[1.0, 2.0]]).as_subclass(Pretending)
    total, _ = add_norm(data, torch.ones(1, 2), torch.ones(2), torch.zeros(2), 0.0)
    assert total.tolist() == [[2.0, 3.0]]
