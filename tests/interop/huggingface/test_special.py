import torch

from regard.data.text.tokenizers.bytes import Bytes
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.interop.huggingface.special import owners, special


def test_ids_are_our_numbers_unless_the_tokens_came_from_elsewhere():
    rows = torch.tensor([[0.0], [2.0], [2.0], [3.0], [4.0]])
    assert owners(Bytes(), rows) == list(range(260))
    assert special(Bytes()) == {"pad": 0, "start": 1, "end": 2}
    tokens = Pretrained((1, 2, 2, 3, 0))
    assert owners(tokens, rows) == [4, 0, 2, 3]
    assert special(tokens) == {"pad": 1, "start": 2, "end": 2}
