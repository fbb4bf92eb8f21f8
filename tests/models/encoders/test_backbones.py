"""What every encoder of pictures promises."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.testing import assert_close

from regard import registry
from regard.data.image.batch import Images, collate_images
from regard.models.attention_factory import build_attention as named
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer
from regard.models.encoders.backbones import KINDS, ImageEncoder, build_image_encoder
from regard.models.encoders.densenet import Dense
from regard.models.encoders.resnet import Residual
from regard.models.encoders.vit import Patches

SIZE = 16
ENCODERS = {
    "resnet": {"stages": (1, 1), "stem": 1},
    "resnet, batch": {"layers": 1, "norm": "batch"},
    **{f"resnet, {name}": {"stages": (1, 1), "attention": name} for name in registry.names("visual")},
    "densenet": {"growth": 8, "layers": 1},
    "densenet, fine": {"growth": 8, "layers": 2, "fine": True, "attention": "channel"},
    "densenet, batch": {"growth": 8, "layers": 1, "norm": "batch"},
    "vit": {"layers": 1, "patch": 4},
    "vit, normalised": {"layers": 1, "patch": 4, "positions": "normalised", "query": True},
    "vit, learned": {"layers": 1, "patch": 4, "positions": "learned", "convolutions": True},
}
each = pytest.mark.parametrize("name", ENCODERS)


def made(name):
    """One that has learned something, without dropout and in double precision."""
    torch.manual_seed(1)
    encoder = build_image_encoder(name.partition(",")[0], 2, SIZE, **ENCODERS[name]).double().eval()
    for parameter in encoder.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    for path, buffer in encoder.named_buffers():  # as if trained: other than 0 and 1
        if path.endswith(("running_mean", "running_var")):
            buffer += 0.05 * torch.rand_like(buffer)
    return encoder


def drawn(*sizes):
    return [torch.rand(2, *size, dtype=torch.float64) for size in sizes]


def batch(pictures, around=(0, 0), filling=0.0):
    """A batch with so much more around it, filled with something that is no picture."""
    found = collate_images(pictures)
    sides = (0, around[1], 0, around[0])
    keep = F.pad(found.keep, sides)
    return Images(F.pad(found.data.double(), sides).masked_fill(~keep[:, None], filling), keep)


def check_alone(encoder, pictures, around):
    """Each picture in a batch is what it is alone, at its kept places and in its mean."""
    together = encoder(batch(pictures, around, torch.nan))
    (rows, columns), stride = together.grid, encoder.stride
    for row, picture in enumerate(pictures):
        alone = encoder(batch([picture]))
        height, width = (-(-side // stride) for side in picture.shape[1:])
        assert alone.grid == (height, width)
        assert alone.keep.all()
        kept = together.keep[row].view(rows, columns)
        assert kept[:height, :width].all()
        assert kept.sum() == height * width
        found = together.data[row].view(rows, columns, SIZE)
        assert_close(found[:height, :width].flatten(0, 1), alone.data[0], atol=1e-9, rtol=1e-9)
        assert not found[~kept].any()
        assert_close(together.final[0][row], alone.final[0][0], atol=1e-9, rtol=1e-9)


@each
def test_padding_changes_nothing(name):
    check_alone(made(name), drawn((9, 14), (5, 23), (17, 3), (1, 1)), (2, 5))


@settings(max_examples=12, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 21), st.integers(1, 21)), min_size=1, max_size=3),
    around=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    name=st.sampled_from(list(ENCODERS)),
)
def test_padding_changes_nothing_whatever_the_sizes(sizes, around, name):
    check_alone(made(name), drawn(*sizes), around)


@each
def test_single_precision_is_within_a_hundred_thousandth(name):
    encoder, pictures = made(name).float(), [each.float() for each in drawn((9, 14), (5, 23))]
    together, alone = encoder(collate_images(pictures)), encoder(collate_images(pictures[:1]))
    rows, columns = alone.grid
    found = together.data[0].view(*together.grid, SIZE)[:rows, :columns].flatten(0, 1)
    scale = alone.data.abs().amax()
    assert (found - alone.data[0]).abs().amax() <= 1e-5 * max(scale, 1)


@each
def test_no_gradient_flows_into_padding_and_all_into_the_picture(name):
    encoder, given = made(name), batch(drawn((9, 14), (5, 23)), (3, 3), 7.0)
    data = given.data.requires_grad_()
    encoded = encoder(Images(data, given.keep))
    ((encoded.data * torch.randn_like(encoded.data)).sum() + encoded.final[0].square().sum()).backward()
    assert not data.grad.masked_select(~given.keep[:, None]).any()
    assert data.grad.movedim(1, -1)[given.keep].any(-1).float().mean() > 0.9
    for path, parameter in encoder.named_parameters():
        assert parameter.grad is not None, path
        assert parameter.grad.isfinite().all(), path


@each
def test_the_final_state_is_the_mean_of_the_kept_places(name):
    encoded = made(name)(batch(drawn((9, 14), (5, 23))))
    mean = encoded.data.sum(1) / encoded.keep.sum(1)[:, None]
    assert encoded.final[0].shape == (2, 1, SIZE)
    assert torch.allclose(encoded.final[0][:, 0], mean) != ("query" in ENCODERS[name])


@each
def test_a_batch_with_a_picture_of_nothing_stays_finite(name):
    given = batch(drawn((9, 14), (5, 5)))
    keep = given.keep.clone()
    keep[1] = False
    encoded = made(name)(Images(given.data, keep))
    assert encoded.data.isfinite().all()
    assert not encoded.data[1].any()
    assert not encoded.keep[1].any()
    assert encoded.final[0].isfinite().all()


@each
def test_it_says_how_large_it_is(name):
    encoder = made(name)
    assert isinstance(encoder, ImageEncoder)
    encoded = encoder(batch(drawn((16, 32))))
    assert encoded.data.shape[2] == encoder.size == SIZE
    assert encoded.grid == (-(-16 // encoder.stride), -(-32 // encoder.stride))


@pytest.mark.parametrize("attention", ["grid_coverage", "additive", "transformer"])
@pytest.mark.parametrize("decoder", [Recurrent, Transformer])
def test_a_decoder_reads_it_and_knows_its_rows(attention, decoder):
    torch.manual_seed(0)
    encoder = build_image_encoder("resnet", 2, SIZE, stages=(1, 1)).eval()
    writes = decoder(7, SIZE, SIZE, attention=partial(named, attention)).eval()
    given, target = collate_images([each.float() for each in drawn((9, 14), (5, 23))]), torch.tensor([[1, 4, 5], [1, 3, 2]])
    memory = writes.remember(encoder(given))
    assert {each.grid for each in memory.memories.values()} == {(3, 6)}
    alone = writes.remember(encoder(collate_images([given.data[1, :, :5]])))
    assert_close(writes(target, memory).output[1:], writes(target[1:], alone).output, atol=1e-4, rtol=1e-4)


def test_words_and_numbers_reach_the_encoder():
    with torch.device("meta"):
        residual = build_image_encoder("resnet", 3, 64, attention="channel", layers=3, dropout=0.1)
        dense = build_image_encoder("densenet", 1, 32, layers=4, dropout=0.2)
        patches = build_image_encoder("vit", 3, 32, layers=2)
        assert len(build_image_encoder("resnet", 3, 64).blocks) == 8
    assert (type(residual), type(dense), type(patches)) == (Residual, Dense, Patches)
    assert (len(residual.blocks), residual.blocks[0].drop.p, residual.stride) == (12, 0.1, 16)
    assert (len(dense.blocks[0].look), dense.blocks[0].look[0].drop.p) == (4, 0.2)
    assert patches.names == ["0", "1"]


def test_what_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="needs to be one of resnet, densenet, vit, got 'vgg'"):
        build_image_encoder("vgg", 3, 64)
    with pytest.raises(ValueError, match="vit has no CNN for the attention 'channel' to stand in; leave it out"):
        build_image_encoder("vit", 3, 64, attention="channel")
    assert KINDS == ("resnet", "densenet", "vit")


def test_a_small_encoder_learns_to_tell_where_a_dot_is():
    """Four places of a dot, told from the whole map: a real problem that no mean of the pixels solves."""
    torch.manual_seed(0)
    for kind, options in (("resnet", {"stages": (1, 1)}), ("vit", {"layers": 1, "patch": 4, "query": True})):
        encoder = build_image_encoder(kind, 1, SIZE, **options)
        head = torch.nn.Linear(SIZE, 4)
        optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], 0.01)
        for _ in range(60):
            labels = torch.randint(4, (32,))
            data = 0.1 * torch.rand(32, 1, 8, 8)
            data[torch.arange(32), 0, labels // 2 * 4 + 1, labels % 2 * 4 + 1] = 1.0
            encoded = encoder(Images(data, torch.ones(32, 8, 8, dtype=torch.bool)))
            logits = head(encoded.final[0][:, 0])
            loss = F.cross_entropy(logits, labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        assert (logits.argmax(-1) == labels).float().mean() > 0.9, kind
