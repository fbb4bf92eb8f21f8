import torch

from regard.data.image.augment.boxes import inside, transform_boxes


def test_a_box_follows_a_shift_and_a_scale():
    boxes = torch.tensor([[0.5, 0.5, 0.2, 0.4]])
    matrix = torch.tensor([[0.5, 0.0, 0.1], [0.0, 1.0, -0.2]])
    torch.testing.assert_close(transform_boxes(boxes, matrix), torch.tensor([[0.35, 0.3, 0.1, 0.4]]))


def test_a_turned_box_is_the_upright_one_around_its_corners():
    quarter = torch.tensor([[0.0, -1.0, 1.0], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(
        transform_boxes(torch.tensor([[0.2, 0.5, 0.2, 0.4]]), quarter), torch.tensor([[0.5, 0.2, 0.4, 0.2]])
    )
    half = 2**-0.5
    eighth = torch.tensor([[half, -half, 0.0], [half, half, 0.0]])
    torch.testing.assert_close(
        transform_boxes(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), eighth)[0, 2:], torch.full((2,), 2**0.5)
    )


def test_boxes_are_cut_at_the_edge_and_dropped_when_little_is_left():
    boxes = torch.tensor([[0.0, 0.5, 0.2, 0.2], [0.09, 0.5, 0.6, 0.2], [-0.2, 0.5, 0.2, 0.2], [-0.04, 0.5, 0.2, 0.2]])
    found, stayed = inside(boxes, visible=0.4)
    assert stayed.tolist() == [True, True, False, False]
    torch.testing.assert_close(found, torch.tensor([[0.05, 0.5, 0.1, 0.2], [0.195, 0.5, 0.39, 0.2]]))


def test_no_boxes_stay_no_boxes():
    found, stayed = inside(transform_boxes(torch.zeros(0, 4), torch.eye(3)[:2]))
    assert found.shape == (0, 4)
    assert stayed.shape == (0,)
