import pytest
import torch

from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import pad
from regard.data.special_tokens import BOS, EOS, PAD
from regard.decoding.score import rate
from regard.losses.candidates import decode_greedily, sample_outputs, score_outputs, switch_to_eval
from regard.models.seq2seq import build

SOURCE = pad([[4, 5, 6, EOS], [5, EOS]])


def network(decoder: str = "recurrent", attention: str = "additive", dropout: float = 0.0):
    torch.manual_seed(1)
    kind = Model(hidden_size=8, heads=2, encoder=decoder, decoder=decoder, attention=AttentionPart(attention, heads=2))
    return build(kind, Dropout(embedding=dropout, residual=dropout), 9, 9, joint=False)


def test_as_many_outputs_as_asked_are_drawn_for_each_source_within_its_limit():
    found = sample_outputs(network(), SOURCE, [6, 3], 5)
    assert [len(each) for each in found] == [5, 5]
    assert max(map(len, found[0])) <= 6
    assert max(map(len, found[1])) <= 3
    assert all(each[-1] == EOS or len(each) in (3, 6) for several in found for each in several)
    assert not {PAD, BOS} & {token for several in found for each in several for token in each}


def test_equal_generators_draw_equal_outputs_and_no_two_sources_share_theirs():
    model = network(dropout=0.5)
    torch.manual_seed(3)
    first = sample_outputs(model, SOURCE, [6, 6], 4)
    torch.manual_seed(3)
    assert sample_outputs(model, SOURCE, [6, 6], 4) == first
    assert sample_outputs(model, SOURCE, [6, 6], 4) != first
    assert len({tuple(each) for several in first for each in several}) > 4


def test_greedy_search_is_made_without_dropout():
    model = network(dropout=0.9)
    assert decode_greedily(model, SOURCE, [6, 6]) == decode_greedily(model.eval(), SOURCE, [6, 6])


def test_a_model_rests_only_for_a_while():
    model = network()
    with switch_to_eval(model):
        assert not any(part.training for part in model.modules())
    assert all(part.training for part in model.modules())
    with pytest.raises(RuntimeError, match="x"), switch_to_eval(model):
        raise RuntimeError("x")
    assert model.training


@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
@pytest.mark.parametrize("attention", ["additive", "transformer", "pointer", "local_p", "coverage", "monotonic", "none"])
def test_likelihoods_are_those_of_each_output_alone_and_have_gradients(decoder, attention):
    model = network(decoder, attention).train(attention != "monotonic")  # which waits for its mean while it learns
    outputs = [[[4, EOS], [7, 8, 4, EOS], [5]], [[EOS]]]
    found = score_outputs(model, SOURCE, outputs)
    assert found.keep.tolist() == [[True, True, True], [True, False, False]]
    logs = []
    for row, several in enumerate(outputs):
        alone = pad([SOURCE.data[row][SOURCE.keep[row]].tolist()])
        for each in several:
            output = model(alone, torch.tensor([[BOS, *each[:-1]]])).output.float()
            output[..., [PAD, BOS]] = -torch.inf
            logs.append(output.log_softmax(-1)[0, torch.arange(len(each)), each].sum())
    torch.testing.assert_close(found.log_probabilities[found.keep], torch.stack(logs), rtol=1e-4, atol=1e-5)
    found.log_probabilities.sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.encoder.parameters())


def test_they_are_the_likelihoods_that_search_gives_but_for_tokens_that_are_never_drawn():
    model = network().eval()
    with torch.no_grad():
        model.decoder.output.bias[[PAD, BOS]] = -1e9
        outputs = sample_outputs(model, SOURCE, [6, 6], 3)
        found = score_outputs(model, SOURCE, outputs)
        for place in range(3):
            target = pad([several[place] for several in outputs])
            scores = rate(model.decoder, model.encode(SOURCE), target).scores
            torch.testing.assert_close(found.log_probabilities[:, place].double(), scores, rtol=1e-5, atol=1e-5)
