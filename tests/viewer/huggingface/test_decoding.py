"""How an answer was found: its steps with the model's own probabilities, and the tree of the search."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from regard.viewer.trace import Trace

from .asking import ASKED, inputs


def test_steps_have_the_models_own_probabilities(model, tokenizer):
    network, source = model("Bart"), inputs(tokenizer, "Tom")
    output = network.generate(**source, max_new_tokens=5, **ASKED)
    example = Trace.from_huggingface(output, tokenizer, source=source, candidates=3).example()
    with torch.no_grad():
        logits = network(**source, decoder_input_ids=output.sequences[:, :-1]).logits[0].log_softmax(-1)
    for place, step in enumerate(example.steps):
        assert step.query == place
        assert step.token == example.axes["target"].labels[place]
        assert step.logprob == pytest.approx(float(logits[place, output.sequences[0, place + 1]]), abs=1e-4)
        assert [score for _, score in step.candidates] == pytest.approx(logits[place].topk(3).values.tolist(), abs=1e-4)
        assert step.candidates[0][1] == step.logprob  # greedy


@pytest.mark.parametrize("seed", range(4))
def test_the_whole_tree_of_beams_is_found_again(model, tokenizer, seed):
    network, source = model("Marian", seed, vocabulary=40), {"input_ids": torch.tensor([[5, 9, 7], [8, 3, 4]])}
    output = network.generate(**source, num_beams=3, max_new_tokens=8, length_penalty=0.0, early_stopping=True, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    assert trace.notes == ()
    for number, example in enumerate(trace.examples):
        beams, answer = example.beams, []
        step, place = beams.best
        assert beams.scores[step, place] == pytest.approx(float(output.sequences_scores[number]), abs=1e-4)
        while step >= 0:
            answer.append(beams.tokens[step][place])
            looked = beams.weights[step, place]
            wanted = trace.attention("decoder.1.cross", number).weights[:, step].mean(0)
            np.testing.assert_allclose(looked, wanted, atol=1e-3)
            step, place = step - 1, beams.parents[step, place]
        assert len(answer) == len(example.steps)
        for step, place in np.argwhere(beams.parents >= 0):  # a row adds the log-probability of its token to its parent's
            before = beams.scores[step - 1, beams.parents[step, place]] if step else 0
            line = output.scores[step][3 * number + beams.parents[step, place]]
            assert min(abs(line - (beams.scores[step, place] - before))) < 1e-4


def test_hypotheses_that_end_are_marked_as_ended(model, tokenizer):
    endings = 0
    for seed in range(4):
        network = model("Bart", seed, vocabulary=12, spread=0.3)
        output = network.generate(torch.tensor([[5, 9, 7]]), num_beams=4, max_new_tokens=8, **ASKED)
        beams = Trace.from_huggingface(output, tokenizer).example().beams
        assert {beams.tokens[step][place] for step, place in np.argwhere(beams.ended)} <= {"</s>"}
        endings += int(beams.ended.sum())
        assert beams.ended[beams.best] == (output.sequences[0, -1] == 2)
    assert endings > 0


def test_a_tree_that_cannot_be_found_again_is_left_out_and_said(model, tokenizer):
    source = inputs(tokenizer, "Tom")
    output = model("Bart").generate(**source, num_beams=3, max_new_tokens=4, **ASKED)
    for changed in (dict(output, scores=None), dict(output, scores=tuple(-score for score in output.scores))):
        trace = Trace.from_huggingface(SimpleNamespace(**changed), tokenizer, source=source)
        assert trace.example().beams is None
        assert trace.notes == ("the tree of the beams needs output_scores=True, a tokenizer and a search without sampling",)
    assert Trace.from_huggingface(SimpleNamespace(**dict(output, scores=None)), tokenizer).example().steps == ()


def test_without_a_tokenizer_the_end_of_an_answer_that_was_done_early_is_its_last_token(model):
    for seed in range(6):
        output = model("Bart", seed, vocabulary=12, spread=0.3).generate(
            torch.tensor([[5, 9, 7]]), num_beams=4, max_new_tokens=8, **ASKED
        )
        example = Trace.from_huggingface(output).example()
        early = len(example.steps) < len(output.scores)
        assert (example.beams is not None) == early
