import torch

from regard.data.batch import Batch, Padded, pad, places, shifted


def test_short_rows_are_filled_and_marked_as_empty():
    padded = pad([[5, 6, 7], [8], [9, 10]])
    assert padded.data.tolist() == [[5, 6, 7], [8, 0, 0], [9, 10, 0]]
    assert padded.keep.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert padded.data.dtype == torch.long


def test_the_filling_can_be_chosen():
    assert pad([[5, 6], [7]], filling=-1).data.tolist() == [[5, 6], [7, -1]]


def test_a_filling_that_looks_like_a_token_is_still_not_kept():
    assert pad([[0, 0], [0]]).keep.tolist() == [[True, True], [True, False]]


def test_no_rows_and_empty_rows_give_empty_tensors():
    assert pad([]).data.shape == (0, 0)
    assert pad([[], []]).data.shape == (2, 0)
    assert pad([[], []]).keep.shape == (2, 0)


def test_a_batch_moves_with_everything_that_is_a_tensor():
    moved = Batch(pad([[1, 2]]), pad([[3]]), ("record",)).to("meta")
    assert moved.source.data.device.type == moved.source.keep.device.type == "meta"
    assert moved.target is not None
    assert moved.target.data.device.type == "meta"
    assert moved.records == ("record",)


def test_a_batch_without_targets_moves_too():
    assert Batch(pad([[1, 2]]), None).to("cpu").target is None


def test_padded_may_hold_vectors():
    moved = Padded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)).to("cpu")
    assert moved.data.shape == (2, 3, 4)


ROWS = Padded(
    torch.tensor([[5, 6, 2, 7, 2, 0], [8, 2, 0, 0, 0, 0]]),
    torch.tensor([[True] * 5 + [False], [True] * 2 + [False] * 4]),
    torch.tensor([[1, 1, 1, 2, 2, 0], [1, 1, 0, 0, 0, 0]]),
)


def test_the_input_of_packed_targets_begins_anew_with_each_example():
    assert shifted(ROWS.data, ROWS.documents)[:, :5].tolist() == [[1, 5, 6, 1, 7], [1, 8, 1, 0, 0]]


def test_places_are_counted_from_the_beginning_of_each_example():
    assert places(ROWS.documents).tolist() == [[0, 1, 2, 0, 1, 0], [0, 1, 0, 0, 0, 0]]


def test_packed_rows_are_moved_and_picked_with_their_documents():
    assert ROWS.to("meta").documents.device.type == "meta"
    picked = ROWS.select_rows([1])
    assert picked.data.tolist() == [[8, 2]]
    assert picked.documents.tolist() == [[1, 1]]


def test_examples_of_packed_rows_can_be_taken_apart():
    alone = ROWS.unpack()
    assert alone.data.tolist() == [[5, 6, 2], [7, 2, 0], [8, 2, 0]]
    assert alone.documents is None
    assert alone.unpack() is alone
    batch = Batch(ROWS, None, (("a", "b"), ("c",)))
    assert batch.unpack().records == ("a", "b", "c")
    assert batch.unpack().unpack().records == ("a", "b", "c")
