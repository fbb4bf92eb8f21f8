import torch

from regard.interop.huggingface.vision_encoder_decoder import trocr
from regard.interop.huggingface.vision_encoder_decoder.settings import read

from .test_settings import said


def test_positions_begin_behind_two_rows(tmp_path):
    told = read(said(tmp_path, trocr=True, decoder={"decoder_start_token_id": 2}))
    theirs = {name: torch.randn(shape) for name, shape in trocr.shapes(told).items()}
    found = trocr.weights(told, theirs)
    assert torch.equal(found["decoder.embedding.positions.table.weight"], theirs[trocr.POSITIONS][2:])
    assert found["decoder.embedding.norm.weight"].shape == (8,)
