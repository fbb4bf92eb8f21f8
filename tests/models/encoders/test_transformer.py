import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention import MultiHead
from regard.attention.positions.learned import Learned
from regard.data.batch import Padded, pad
from regard.models.encoders.transformer import Transformer

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2]])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_it_equals_pytorchs_encoder(norm):
    encoder = Transformer(11, 8, layers=2, heads=2, inner=12, norm=norm).eval()
    data = encoder.embedding(SOURCE.data)
    for name in encoder.names:
        ours = encoder.get_submodule(name)
        theirs = nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=norm == "pre").eval()
        theirs.linear1, theirs.linear2 = ours.feedforward[0], ours.feedforward[2]
        theirs.norm1, theirs.norm2 = ours.around_self.norm, ours.around_feedforward.norm
        heads = ours.self
        with torch.no_grad():
            theirs.self_attn.in_proj_weight.copy_(torch.cat([heads.query.weight, heads.key.weight, heads.value.weight]))
            theirs.self_attn.in_proj_bias.copy_(torch.cat([heads.query.bias, heads.key.bias, heads.value.bias]))
        theirs.self_attn.out_proj.load_state_dict(heads.output.state_dict())
        data = theirs.train()(data, src_key_padding_mask=~SOURCE.keep)  # train: without dropout, and not by its fast path
    data = encoder.norm(data)
    assert_close(encoder(SOURCE).data[SOURCE.keep], data[SOURCE.keep])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_never_touches_the_result(norm):
    encoder = Transformer(11, 8, layers=2, heads=2, norm=norm).eval()
    encoded = encoder(SOURCE)
    longer = encoder(Padded(F.pad(SOURCE.data, (0, 3), value=9), F.pad(SOURCE.keep, (0, 3))))
    assert_close(longer.data[:, :4], encoded.data)
    assert_close(longer.final, encoded.final)
    assert encoded.data[~SOURCE.keep].abs().sum() == 0


def test_the_final_state_is_the_mean_of_what_is_there():
    encoded = Transformer(11, 8, heads=2).eval()(SOURCE)
    assert_close(encoded.final[0][1, 0], encoded.data[1, :2].mean(0))
    assert encoded.final[0].shape == (3, 1, 8)


def test_the_tokens_come_along():
    assert Transformer(9, 8, heads=2)(pad([[4, 5, 6], [7, 8]])).tokens.tolist() == [[4, 5, 6], [7, 8, 0]]


def test_the_order_of_tokens_matters():
    encoder = Transformer(11, 8, heads=2).eval()
    forwards, back = pad([[4, 5, 6]]), pad([[6, 5, 4]])
    assert not torch.allclose(encoder(forwards).data, encoder(back).data.flip(1), atol=1e-3)


def test_an_embedding_of_another_width_is_fitted_to_the_layers():
    assert isinstance(Transformer(11, 8, heads=2).widen, nn.Identity)
    encoder = Transformer(11, 8, embedding=6, heads=2, positions=Learned(4, "concat"))
    assert encoder.widen.weight.shape == (8, 10)
    assert encoder(SOURCE).data.shape == (3, 4, 8)


def test_its_layers_are_called_by_number():
    encoder = Transformer(11, 8, layers=2, heads=2)
    assert isinstance(encoder.get_submodule("1.self"), MultiHead)
    assert encoder.get_submodule("1.self").heads == 2


def test_an_unknown_norm_is_refused():
    with pytest.raises(ValueError, match="norm needs to be 'pre', 'post' or 'rms'"):
        Transformer(11, 8, heads=2, norm="none")
