import pytest
import torch

from regard.errors import FailedError
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.losses.types import Loss
from regard.training.gradient import accumulate, compute_gradient, describe_remedy, out_of_memory, split

from .small import Copies, Network


def test_a_batch_is_cut_by_rows_and_loses_only_padding():
    batch = Copies(rows=7).batch(0)
    pieces = split(batch, 3)
    assert [len(piece.source.data) for piece in pieces] == [2, 2, 3]
    assert [record for piece in pieces for record in piece.records] == list(range(7))
    assert sum(int(piece.target.keep.sum()) for piece in pieces) == int(batch.target.keep.sum())
    assert all(piece.source.keep[:, -1].any() for piece in pieces)
    assert torch.cat([piece.target.data[piece.target.keep] for piece in pieces]).equal(batch.target.data[batch.target.keep])


def test_one_part_is_the_batch_itself_and_rows_are_the_limit():
    batch = Copies(rows=3).batch(0)
    assert split(batch, 1)[0] is batch
    assert len(split(batch, 8)) == 3
    assert len(split(batch._replace(target=None), 2)) == 2


class Memory:
    """A model whose memory holds so many rows."""

    def __init__(self, rows, error=torch.OutOfMemoryError):
        self.model, self.rows, self.error, self.tried = Network(dropout=0.0), rows, error, []

    def begin(self):
        self.model.zero_grad()

    def backward(self, batch):
        self.tried.append(len(batch.source.data))
        if len(batch.source.data) > self.rows:
            raise self.error("CUDA out of memory. Tried to allocate 20 GiB")
        loss = teacher_forcing_loss(self.model, batch)
        loss.total.backward()
        return Loss(loss.total.detach(), loss.tokens, loss.parts)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError, MemoryError])
def test_too_little_memory_halves_the_parts_and_keeps_the_gradient(error):
    batches = [Copies(rows=8).batch(0), Copies(rows=8).batch(1)]
    whole, small = Memory(8), Memory(2, error)
    small.model.load_state_dict(whole.model.state_dict())
    first, parts = compute_gradient(batches, 1, whole.backward, whole.begin)
    second, halved = compute_gradient(batches, 1, small.backward, small.begin)
    assert (parts, halved) == (1, 4)
    assert small.tried == [8, 4, *[2] * 8]
    assert first.tokens == second.tokens
    torch.testing.assert_close(first.total, second.total)
    torch.testing.assert_close(first.parts["nll"], second.parts["nll"])
    for left, right in zip(whole.model.parameters(), small.model.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad)


def test_one_row_that_is_too_much_ends_with_advice():
    memory = Memory(0)
    with pytest.raises(
        FailedError, match=r"out of memory with a single sequence \(CUDA out of memory.*max_source_length.*bf16"
    ):
        compute_gradient([Copies(rows=4).batch(0)], 1, memory.backward, memory.begin)
    assert memory.tried == [4, 2, 1]


def test_other_errors_are_not_taken_for_too_little_memory():
    def broken(batch):
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        compute_gradient([Copies().batch(0)], 1, broken, lambda: None)
    assert not out_of_memory(ValueError("out of memory"))
    assert out_of_memory(
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried")
    )
    assert "MemoryError" in describe_remedy(MemoryError(), "here")


def test_gradients_of_several_batches_add_up_where_they_are():
    one, other, unused = (torch.ones(2, requires_grad=True) for _ in range(3))
    accumulate((3 * one + 2 * other).sum(), [one, other, unused])
    before = one.grad
    accumulate((one * other).sum(), [one, other, unused])
    assert one.grad is before
    assert (one.grad.tolist(), other.grad.tolist(), unused.grad) == ([4, 4], [3, 3], None)


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("could not create a primitive", True),
        ("could not execute a primitive", True),
        ("could not create a memory object", True),
        ("std::bad_alloc", True),
        ("XNNPACK: failed to allocate 64 bytes for packed weights", True),
        ("[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory", True),
        ("could not create a primitive descriptor for the LSTM forward propagation primitive.", False),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)
def test_errors_of_libraries_that_mean_memory_are_told_from_others(text, memory):
    assert out_of_memory(RuntimeError(text)) is memory
