"""Answers as examples: they looked where a pass over the answer looks, whatever the search did to its rows."""

import numpy as np
import pytest
import torch

from regard.viewer.trace import Trace

from .asking import ASKED, forced, inputs, row


@pytest.mark.parametrize("kind", ["Bart", "Marian", "T5"])
@pytest.mark.parametrize("beams", [1, 4])
def test_an_answer_looked_where_a_forced_pass_over_it_looks(model, tokenizer, kind, beams):
    swapped = 0
    for seed in range(2):
        network = model(kind, seed).double()  # scores of T5 have no scale: in single precision, processors differ by 2e-4
        source = inputs(tokenizer, "Tom chases Jerry", "汤姆 Tom")
        output = network.generate(**source, num_beams=beams, num_return_sequences=min(beams, 2), max_new_tokens=9, **ASKED)
        trace = Trace.from_huggingface(output, tokenizer, source=source)
        each = len(trace.examples) // 2
        for number, example in enumerate(trace.examples):
            length = len(example.axes["written"])
            truth = forced(network, row(source, number // each), output.sequences[number, :length])
            for name, layers in truth.items():
                for layer, weights in enumerate(layers):
                    found = trace.attention(name.format(layer), number).weights
                    np.testing.assert_allclose(found, weights[0], atol=1e-4)
        if beams > 1:
            swapped += sum(len(set(rows[rows >= 0].tolist())) > 1 for rows in output.beam_indices)
    assert swapped > 0 or beams == 1


@pytest.mark.parametrize("beams", [1, 3])
def test_a_text_that_is_gone_on_with_looked_where_a_pass_over_it_looks(model, tokenizer, beams):
    network = model("GPT2", 1)
    tokenizer.padding_side = "left"
    source = inputs(tokenizer, "Tom chases Jerry", "Tom")
    tokenizer.padding_side = "right"
    output = network.generate(**source, num_beams=beams, max_new_tokens=6, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    for number, example in enumerate(trace.examples):
        places, padding = len(example.axes["tokens"]), int((source["attention_mask"][number] == 0).sum())
        text = output.sequences[number, padding : padding + places][None]
        with torch.no_grad():
            layers = network(text, output_attentions=True).attentions
        for layer, attention_map in enumerate(example.attentions):
            np.testing.assert_allclose(attention_map.weights, layers[layer][0], atol=1e-4)
            np.testing.assert_array_equal(attention_map.allowed, np.tri(places, dtype=bool))
        assert example.axes["tokens"].labels[0] == "Tom"
        assert [step.query for step in example.steps] == list(range(places - len(example.steps), places))
        assert (example.beams is not None) == (beams > 1)
    assert trace.examples[1].steps[0].query == 0  # the prompt is one token


def test_padding_of_sources_and_answers_is_gone(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry", "Tom")
    network = model("Bart", 3, spread=0.3)
    network.generation_config.eos_token_id = None
    output = network.generate(**source, max_new_tokens=6, **ASKED)
    output.sequences[1, 3:] = torch.tensor([2, 1, 1, 1])  # as if the second had ended after its third token
    short = Trace.from_huggingface(output, tokenizer, source=source).examples[1]
    assert short.axes["source"].labels == ["Tom"]
    assert short.axes["target"].labels[-1] == "</s>"
    assert [len(short.axes[name]) for name in ("target", "written")] == [3, 3]
    assert [attention_map.weights.shape[1:] for attention_map in short.attentions] == [(1, 1)] * 2 + [(3, 3)] * 2 + [
        (3, 1)
    ] * 2
