import torch
from torch.testing import assert_close

from regard.interop.huggingface.vision_encoder_decoder import vit
from regard.interop.huggingface.vision_encoder_decoder.settings import read

from .test_settings import said


def test_what_stands_for_the_whole_has_its_position_in_it(tmp_path):
    told = read(said(tmp_path, {"model_type": "deit"}))
    theirs = {name: torch.randn(shape) for name, shape in vit.shapes(told).items()}
    found = vit.weights(told, theirs)
    assert_close(
        found["encoder.query"][1], (theirs["encoder.embeddings.distillation_token"] + theirs[vit.POSITIONS][:, 1])[0, 0]
    )
    assert_close(found["encoder.positions.table"][1, 0], theirs[vit.POSITIONS][0, 2 + 2])
    assert found["encoder.fit.weight"].shape == (12, 8)
