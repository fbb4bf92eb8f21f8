import pytest
import torch
from torch.testing import assert_close

from regard.config import AttentionPart, Dropout, Model, Train
from regard.data.batch import Batch, Padded, pad, shifted
from regard.data.special_tokens import NO_TOKEN
from regard.losses import linear_cross_entropy
from regard.losses.copying import compute_token_logs, mixture_loss
from regard.losses.teacher_forcing import TeacherForcing, teacher_forcing_loss
from regard.models.seq2seq import build

DECODERS = ["recurrent", "convolution", "transformer"]
VOCABULARY = 9
SOURCE = pad([[4, 3, 3, 2], [3, 6, 2]])._replace(copies=pad([[4, 10, 11, 2], [9, 6, 2]], NO_TOKEN).data)
TARGET = pad([[10, 5, 11, 2], [9, 7, 2]])
"""Words behind the vocabulary of nine: those at places 1 and 2 of the first source, and at 0 of the second."""


def network(decoder, attention="additive", **options):
    part = AttentionPart(attention)
    model = Model(decoder=decoder, encoder=decoder, attention=part, hidden_size=8, heads=2, copy=True, **options)
    return build(model, Dropout(0.0, 0.0), 9, VOCABULARY, joint=False).double()


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_fused_loss_and_its_gradients_are_those_of_the_whole_distribution(decoder):
    model = network(decoder)
    fused = teacher_forcing_loss(model, Batch(SOURCE, TARGET))
    usual = mixture_loss(model(SOURCE, shifted(TARGET.data)).output.double(), TARGET)
    assert_close(fused.total, usual.total, check_dtype=False, rtol=1e-5, atol=1e-5)
    parameters = list(model.parameters())
    found, expected = (torch.autograd.grad(loss.total, parameters, allow_unused=True) for loss in (fused, usual))
    for name, mine, other in zip(dict(model.named_parameters()), found, expected, strict=True):
        assert (mine is None) == (other is None), name
        if mine is not None:
            assert_close(mine, other, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_distribution_over_vocabulary_and_source_sums_to_one(decoder):
    model = network(decoder, coverage=decoder == "recurrent")
    logs = model(SOURCE, shifted(TARGET.data)).output
    assert logs.shape[-1] == VOCABULARY + 4
    assert_close(logs.logsumexp(-1), torch.zeros_like(logs[..., 0]), atol=1e-5, rtol=0)
    assert logs[0, :, 9].isneginf().all(), "place 0 of the first source holds a word that the vocabulary lists"
    assert logs[1, :, 10:].isneginf().all()


def test_steps_equal_teacher_forcing_with_words_outside_the_vocabulary():
    for decoder in DECODERS:
        model = network(decoder)
        whole = model(SOURCE, shifted(TARGET.data)).output
        memory = model.encode(SOURCE)
        state, token = model.decoder.start(memory), shifted(TARGET.data)
        for place in range(TARGET.data.shape[1]):
            step = model.decoder.step(token[:, place], memory, state)
            assert_close(step.output, whole[:, place])
            state = step.state


def test_no_tensor_of_target_by_source_by_vocabulary_and_no_logits_are_saved():
    model, sizes = network("recurrent"), []
    with torch.autograd.graph.saved_tensors_hooks(lambda kept: sizes.append(tuple(kept.shape)) or kept, lambda kept: kept):
        teacher_forcing_loss(model, Batch(SOURCE, TARGET))
    assert not [size for size in sizes if len(size) >= 3 and size[-1] in (VOCABULARY, VOCABULARY + 4)]


def test_logs_of_tokens_equal_those_of_all_logits_in_chunks(monkeypatch):
    monkeypatch.setitem(linear_cross_entropy.CHUNK_ROWS, "cpu", 2)
    hidden, weight, bias = (torch.randn(size, dtype=torch.float64, requires_grad=True) for size in ((5, 3), (4, 3), (4,)))
    target = torch.tensor([0, 1, 2, 3, 0])

    def run(hidden, weight, bias):
        return tuple(compute_token_logs(hidden, weight, bias, target))

    logs = (hidden @ weight.mT + bias).log_softmax(-1)
    assert_close(run(hidden, weight, bias), (logs.gather(1, target[:, None])[:, 0], logs.mean(-1)))
    assert torch.autograd.gradcheck(run, (hidden, weight, bias))


def test_smoothing_is_of_the_generated_part_and_finite():
    model = network("recurrent")
    plain, smooth = (teacher_forcing_loss(model, Batch(SOURCE, TARGET), smoothing=share) for share in (0.0, 0.1))
    assert_close(plain.parts["nll"], smooth.parts["nll"])
    assert smooth.total.isfinite()
    assert teacher_forcing_loss(model, Batch(SOURCE, TARGET), smoothing=0.1, own=1.0).total.isfinite()


def test_sparse_weights_beside_the_word_cost_much_but_not_everything():
    model = network("recurrent", "additive+sparsemax")
    model.decoder.cross.score.v.weight.data.mul_(1e4)
    assert teacher_forcing_loss(model, Batch(SOURCE, TARGET)).total.isfinite()


def test_a_confidence_penalty_has_no_one_vocabulary():
    with pytest.raises(ValueError, match=r"train\.confidence_penalty needs a distribution over one vocabulary"):
        TeacherForcing(Train(confidence_penalty=0.1), network("recurrent"))


def test_a_padded_source_keeps_its_copies():
    rounded, rows = SOURCE.round_shape(1), SOURCE.select_rows([1])
    assert rounded.copies.shape == rounded.data.shape
    assert rounded.copies[:, 4:].eq(NO_TOKEN).all()
    assert rows.copies.tolist() == [[9, 6, 2]]
    assert isinstance(SOURCE.to("cpu"), Padded)
