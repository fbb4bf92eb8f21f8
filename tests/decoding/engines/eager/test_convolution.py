import pytest
import torch
from torch.nn import functional as F

from regard import tasks
from regard.config import Data, Model, Train
from regard.decoding.engines.eager.attention import PreparedAttention
from regard.decoding.engines.eager.convolution import Engine, PreparedLayer, covers, flatten_convolution
from regard.decoding.engines.eager.embedding import OutputProjection
from regard.decoding.engines.eager.linear import Float32Linear, Int8Linear, prepare_matrix
from regard.interop.engine import opened
from regard.models.layers.gated_convolution import GatedConvolution
from regard.tasks.translate import Config
from regard.training.loop import train

from ....models.small import made
from .walked import near, walked

OPTIONS = {
    "convolution": {"encoder": "convolution"},
    "narrow": {"embedding_size": 6},
    "one token at a time": {"kernel_size": 1},
    "wide": {"kernel_size": 5, "layers": 3},
    "untied": {"encoder": "transformer", "tie_embeddings": False, "positions": "none"},
    "set beside": {"join": "concat"},
}


def built(attention="bilinear", **options):
    torch.manual_seed(5)
    return made(attention, **{"encoder": "recurrent", "decoder": "convolution", "layers": 2} | options).eval()


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("attention", ["bilinear", "additive", "transformer", "additive+sparsemax", "monotonic", "local_m"])
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    walked(Engine, built(attention, **OPTIONS[kind]))


@pytest.mark.parametrize("kernel", [1, 3])
def test_a_convolution_at_one_place_is_a_matrix(kernel):
    torch.manual_seed(0)
    gated, data = GatedConvolution(4, kernel), torch.randn(2, kernel, 4)
    with torch.no_grad():
        found = F.glu(prepare_matrix(*flatten_convolution(gated))(data.flatten(1)), dim=1)
        torch.testing.assert_close(found, gated(data)[:, 0])


@pytest.mark.parametrize("attention", ["bilinear", "additive+sparsemax", "mocha"])
def test_int8_is_near(attention):
    near(Engine, built(attention, hidden_size=64))


def products(part):
    """Every matrix below a part of an engine."""
    if isinstance(part, Float32Linear | Int8Linear):
        return [part]
    below = (
        part
        if isinstance(part, list)
        else vars(part).values()
        if isinstance(part, Engine | PreparedLayer | PreparedAttention | OutputProjection)
        else ()
    )
    return [each for inner in below for each in products(inner)]


def test_in_int8_every_matrix_is_rounded_and_takes_a_quarter():
    decoder = built("transformer", hidden_size=64).decoder
    exact, rounded = (products(Engine(decoder, each)) for each in ("float32", "int8"))
    assert {type(each) for each in rounded} == {Int8Linear}
    assert len(rounded) == len(exact) == 2 * len(("convolution", "query", "W_Q", "W_O")) + len(("in", "out", "words"))
    matrices = [torch.ops.quantized.linear_unpack(each.packed)[0] for each in rounded]
    assert 4 * sum(each.nbytes for each in matrices) == sum(each.weight.nbytes for each in exact)


TEXTS = ["Mary likes Tom", "Tom likes the big dog", "a small cat chases Tom every day", "the cat in the park likes Jerry"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small model that has learned something of the built-in grammar."""
    config = Config(
        data=Data(batch_tokens=512, samples=120),
        model=Model(encoder="convolution", decoder="convolution", hidden_size=32, layers=2),
        train=Train(max_steps=60, evaluate_every=60, learning_rate=1e-2),
    )
    directory = tmp_path_factory.mktemp("run")
    train(tasks.experiment("translate", config)[0], directory, quiet=True)
    return directory


@pytest.mark.parametrize("beam", [1, 4])
def test_a_trained_model_answers_in_int8_nearly_what_it_answers_in_float32(run, beam):
    exact, rounded = (opened(run, "cpu", precision=each).predict(TEXTS, beam=beam) for each in ("float32", "int8"))
    assert sum(one.text == other.text for one, other in zip(exact, rounded, strict=True)) >= len(TEXTS) - 1
    scores, near_scores = ([each.score for each in answers] for answers in (exact, rounded))
    assert near_scores == pytest.approx(scores, abs=0.05)
    assert near_scores != scores


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("bilinear", {"decoder": "recurrent"}, "needs the convolutional decoder, got Recurrent"),
        ("none", {}, "needs an attention to the source"),
        ("pointer", {}, "needs an output that is nothing but a projection"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
