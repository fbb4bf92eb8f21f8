"""What every attention inside a CNN promises. A file in the folder is under test by being there."""

import re

import pytest
import torch
from torch import nn
from torch.export import Dim, export
from torch.testing import assert_close

from regard import registry
from regard.attention.visual import Visual

NAMES = registry.names("visual")
CHANNELS = 16
each = pytest.mark.parametrize("name", NAMES)


def made(name, **options):
    """One that has learned something: none of its parameters is where it began."""
    module = registry.find(name, "visual")(CHANNELS, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)
    return module


@each
def test_it_is_built_from_its_channels_alone(name):
    assert isinstance(registry.build(name, "visual", channels=CHANNELS), Visual)


@each
@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 5), (6, 3)])
def test_a_picture_of_any_size_keeps_its_size(name, height, width):
    image = torch.randn(2, CHANNELS, height, width)
    module = made(name)
    before = image.clone()
    attended = module.attend(image)
    assert attended.context.shape == image.shape
    assert torch.equal(image, before)
    sizes = {"": 1, "channel": CHANNELS, "place": height * width, "branch": 2}
    assert attended.weights.shape == (2, *(sizes[axis] for axis in module.axes))
    assert_close(module(image), attended.context)
    assert module.attend(image, weights=False).weights is None


@each
def test_pictures_of_a_batch_do_not_influence_each_other(name):
    module, image = made(name), torch.randn(3, CHANNELS, 4, 5)
    whole = module(image)
    for row in range(3):
        assert_close(module(image[row : row + 1])[0], whole[row])
    other = image.clone()
    other[1] = torch.nan
    assert_close(module(other)[[0, 2]], whole[[0, 2]])


SIZES = ((4, 5), (2, 6), (1, 1))
KEEP = torch.zeros(3, 6, 7, dtype=torch.bool)
for row, (height, width) in enumerate(SIZES):
    KEEP[row, :height, :width] = True
VARIANTS = [(name, {}) for name in NAMES] + [
    ("non_local", {"subsample": 2}),
    ("non_local", {"version": "dot", "subsample": 3}),
]


@pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
def test_padding_might_as_well_not_exist(name, options):
    module = made(name, **options).double()
    image = torch.randn(3, CHANNELS, 6, 7, dtype=torch.float64)
    spoiled = image.masked_fill(~KEEP[:, None], torch.nan).requires_grad_()
    padded = module.attend(spoiled, keep=KEEP)
    assert_close(module(spoiled, KEEP), padded.context)
    assert not padded.context.masked_select(~KEEP[:, None]).any()
    for row, (height, width) in enumerate(SIZES):
        only = slice(row, row + 1)
        alone = module.attend(image[only, :, :height, :width])
        assert_close(padded.context[only, :, :height, :width], alone.context)
        if options.get("subsample", 1) == 1:
            assert_close(of_places(module, padded.weights[only], KEEP[row].flatten()), alone.weights)
    (padded.context * torch.randn_like(image)).sum().backward()
    assert spoiled.grad.isfinite().all()
    assert not spoiled.grad.masked_select(~KEEP[:, None]).any()


def of_places(module, weights, kept):
    """The weights of the kept places; there may be none on others."""
    if module.axes[2] != "place":
        return weights
    assert not weights[..., ~kept].any()
    return (weights[:, :, kept] if module.axes[1] == "place" else weights)[..., kept]


@each
def test_a_map_of_padding_alone_becomes_zeros(name):
    module, image = made(name), torch.randn(2, CHANNELS, 3, 4, requires_grad=True)
    found = module(image, torch.zeros(2, 3, 4, dtype=torch.bool))
    found.sum().backward()
    assert not found.any()
    assert not image.grad.any()


@each
@pytest.mark.unhooked
def test_a_mask_of_another_shape_is_refused(name):
    text = "needs a keep of (batch, height, width) = (2, 3, 4), got (2, 4, 3)"
    with pytest.raises(ValueError, match=re.escape(text)):
        made(name)(torch.randn(2, CHANNELS, 3, 4), torch.ones(2, 4, 3, dtype=torch.bool))


@each
def test_everything_in_it_learns(name):
    module, image = made(name), torch.randn(2, CHANNELS, 4, 5, requires_grad=True)
    (module(image) * torch.randn_like(image)).sum().backward()
    for path, parameter in module.named_parameters():
        assert parameter.grad is not None, path
        assert parameter.grad.isfinite().all(), path
        assert parameter.grad.any(), path
    assert image.grad.isfinite().all()


@each
def test_gradients_are_those_of_the_numbers(name):
    module = registry.find(name, "visual")(4, **({"reduction": 2} if name not in ("spatial", "non_local") else {})).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    image = torch.randn(1, 4, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(module, image)


@each
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_every_precision_stays_itself_and_finite(name, dtype):
    module, image = made(name), torch.randn(2, CHANNELS, 2, 2)  # few places: PyTorch's larger bf16 products die on some CPUs
    expected = module(image)
    attended = module.to(dtype).attend(image.to(dtype))
    assert attended.context.dtype == attended.weights.dtype == dtype
    assert_close(attended.context.float(), expected, atol=0.15, rtol=0.15)


@each
def test_it_does_the_same_in_training_as_later_and_the_same_twice(name):
    module, image = made(name), torch.randn(2, CHANNELS, 3, 3)
    trained = module.train()(image)
    assert torch.equal(trained, module(image))
    assert torch.equal(trained, module.eval()(image))


@each
@pytest.mark.parametrize("shape", [(2, CHANNELS + 1, 3, 3), (2, CHANNELS, 0, 3)], ids=str)
def test_a_picture_of_other_channels_or_of_nothing_is_refused(name, shape):
    text = f"was made for feature maps of (batch, {CHANNELS}, height, width) with at least one place, got {shape}"
    with pytest.raises(ValueError, match=re.escape(text)):
        made(name)(torch.zeros(shape))


@each
@pytest.mark.unhooked
def test_what_is_no_feature_map_is_refused(name):
    with pytest.raises(ValueError, match=re.escape(f"got {(CHANNELS, 3, 3)}")):
        made(name)(torch.zeros(CHANNELS, 3, 3))


@each
def test_it_needs_channels(name):
    with pytest.raises(ValueError, match="needs 1 channel or more, got 0"):
        registry.find(name, "visual")(0)


@each
@pytest.mark.unhooked
def test_it_compiles_whole_with_an_open_size_and_equals_itself(name):
    torch._dynamo.reset()
    module = made(name)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    image = torch.randn(2, CHANNELS, 5, 7)
    torch._dynamo.mark_dynamic(image, (2, 3))
    assert_close(compiled(image), module(image))
    with torch.compiler.set_stance("fail_on_recompile"):
        other = torch.randn(2, CHANNELS, 9, 6)
        assert_close(compiled(other), module(other))


@each
@pytest.mark.unhooked
def test_it_is_exported_with_an_open_batch_and_size(name):
    module = made(name)
    shapes = {0: Dim("batch"), 2: Dim("height"), 3: Dim("width")}
    program = export(module, (torch.randn(3, CHANNELS, 5, 7),), dynamic_shapes=(shapes,)).module()
    for size in ((3, CHANNELS, 5, 7), (2, CHANNELS, 8, 4)):
        image = torch.randn(size)
        assert_close(program(image), module(image))
