import torch

from regard.decoding.engines.eager.linear import Buffers


def test_room_of_a_width_is_used_again_and_grows():
    rooms = Buffers()
    first = rooms(4, 3)
    assert first.shape == (4, 3)
    assert rooms(4, 3) is first
    assert rooms(2, 3).data_ptr() == first.data_ptr()
    assert rooms(2, 3).shape == (2, 3)
    assert rooms(9, 3).shape == (9, 3)
    assert rooms(2, 3).data_ptr() == rooms(9, 3).data_ptr() != first.data_ptr()


def test_widths_do_not_meddle_nor_do_batches():
    rooms, others = Buffers(), Buffers()
    mine, wide, theirs = rooms(2, 3).fill_(1.0), rooms(2, 4).fill_(2.0), others(2, 3).fill_(3.0)
    assert [each.unique().item() for each in (mine, wide, theirs)] == [1.0, 2.0, 3.0]
    assert mine.dtype == torch.float32
