import torch

from regard.tasks.detect.predictor import draw_boxes
from regard.viewer.palettes import table

FIRST, SECOND = (torch.from_numpy(table("okabe_ito")[place].copy()) for place in (0, 1))


def test_a_line_runs_along_the_inside_of_a_box():
    picture = torch.full((3, 6, 8), 9, dtype=torch.uint8)
    pixels = draw_boxes(picture, torch.tensor([[0.25, 0.0, 0.75, 0.5]]), torch.tensor([0]))
    changed = (pixels != 9).any(0)
    assert changed.int().tolist() == [
        [0, 0, 1, 1, 1, 1, 0, 0],
        [0, 0, 1, 0, 0, 1, 0, 0],
        [0, 0, 1, 1, 1, 1, 0, 0],
        *[[0] * 8] * 3,
    ]
    assert torch.equal(pixels[:, 0, 2], FIRST)
    assert (picture == 9).all()


def test_the_surest_lies_on_top_and_a_grey_picture_gets_colours():
    pixels = draw_boxes(
        torch.zeros(1, 4, 4, dtype=torch.uint8),
        torch.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5]]),
        torch.tensor([0, 1]),
    )
    assert torch.equal(pixels[:, 0, 0], FIRST)
    assert torch.equal(pixels[:, 1, 1], SECOND)


def test_a_box_over_the_edge_or_of_no_size_is_drawn_where_it_can_be():
    pixels = draw_boxes(torch.zeros(3, 4, 4, dtype=torch.uint8), torch.tensor([[-1.0, 0.5, 2.0, 0.5]]), torch.tensor([7]))
    assert pixels.any(0).any(1).tolist() == [False, True, True, False]
    assert torch.equal(pixels[:, 2, 0], FIRST)
