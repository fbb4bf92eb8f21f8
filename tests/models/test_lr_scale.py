from functools import partial

from regard.attention.score.bilinear import Bilinear
from regard.models.attention_factory import build_attention, build_self_attention
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer
from regard.models.lr_scale import scale_learning_rate


def paces(module):
    return {name: found.pace for name, found in module.named_modules() if hasattr(found, "pace")}


def test_every_matrix_of_a_product_gets_its_pace_and_no_other():
    assert scale_learning_rate(None) is None
    assert paces(scale_learning_rate(build_attention("luong", 16, 4))) == {"score.W": 0.25}
    assert paces(scale_learning_rate(build_attention("local_p", 16, 4))) == {"score.W": 0.25}
    assert paces(scale_learning_rate(build_attention("memory_network", 16, 4))) == {"query": 0.25, "embed": 0.25}
    assert paces(scale_learning_rate(build_self_attention("bilinear", 32, 2))) == {"score.W": 0.25}
    assert paces(scale_learning_rate(build_attention("additive", 16, 4))) == {}
    assert paces(scale_learning_rate(build_attention("transformer", 16, 4))) == {}


def test_decoders_whose_states_are_large_make_their_attention_steady():
    make = partial(build_attention, "luong")
    assert paces(Convolution(9, 4, 16, attention=make)) == {"0.cross.score.W": 0.25}
    assert paces(Transformer(9, 4, 16, attention=make)) == {"0.cross.score.W": 0.25}
    assert paces(Transformer(9, 4, 64, self_attention="bilinear")) == {"0.self.score.W": 0.25}
    small = Recurrent(9, 4, 16, attention=make)
    assert any(isinstance(each, Bilinear) for each in small.modules())
    assert paces(small) == {}
