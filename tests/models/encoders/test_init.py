import torch

from regard.attention import Encoded
from regard.models.encoders import find_summary


def test_a_summary_is_the_last_layer_of_the_first_state():
    hidden, cell = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[3.0], [4.0]]])
    assert find_summary(Encoded(torch.zeros(1, 1, 1), None, (hidden, cell))).tolist() == [[2]]
