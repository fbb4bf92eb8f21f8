import torch

from regard.data.series.batch import SeriesBatch
from regard.data.series.windows import Window, collate

from .test_windows import series


def test_rows_of_a_batch_are_selected_with_their_windows():
    batch = collate([Window(series(9, targets=2), origin) for origin in (3, 4, 5)], 3, 2)
    assert isinstance(batch, SeriesBatch)
    part = batch.select_rows([2, 0])
    assert part.rows == 2
    assert [window.origin for window in part.records] == [5, 3]
    assert torch.equal(part.source.data, batch.source.data[[2, 0]])
    assert torch.equal(part.target.data, batch.target.data[[2, 0]])
    assert torch.equal(part.to("cpu").observed, batch.observed[[2, 0]])
    assert part.round_shape() is part
    assert part.unpack() is part
