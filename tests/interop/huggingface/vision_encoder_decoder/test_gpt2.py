import torch

from regard.interop.huggingface.vision_encoder_decoder import gpt2
from regard.interop.huggingface.vision_encoder_decoder.settings import read

from .test_settings import said


def test_looks_lie_side_by_side_and_old_files_have_masks(tmp_path):
    told = read(said(tmp_path))
    theirs = {name: torch.randn(shape) for name, shape in gpt2.shapes(told).items()}
    found = gpt2.weights(told, theirs)
    packed = theirs["decoder.transformer.h.0.attn.c_attn.weight"]
    assert torch.equal(found["decoder.0.self.key.weight"], packed[:, 12:24].mT)
    assert "decoder.transformer.h.0.crossattention.masked_bias" in gpt2.unused(told)
