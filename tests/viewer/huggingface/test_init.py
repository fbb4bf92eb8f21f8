"""What transformers models return, as traces that pass every check and can be stored."""

import numpy as np
import pytest
import torch

from regard.viewer.io import load, save
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Trace

from .asking import ASKED, inputs


def test_half_precision_comes_through(model, tokenizer):
    source = inputs(tokenizer, "Tom")
    for dtype, found in ((torch.bfloat16, np.float32), (torch.float16, np.float16)):
        with torch.no_grad():
            output = model("Bert").to(dtype)(**source, output_attentions=True)
        assert Trace.from_huggingface(output, tokenizer, source=source).attention().weights.dtype == found


def test_a_trace_of_an_answer_can_be_stored(model, tokenizer, tmp_path):
    source = inputs(tokenizer, "Tom chases 汤姆")
    output = model("Bart").generate(**source, num_beams=3, max_new_tokens=6, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    again = load(save(trace, tmp_path / "t.attn.safetensors"))
    np.testing.assert_array_equal(again.example().beams.weights, trace.example().beams.weights)
    assert again.example().steps == trace.example().steps


def test_a_model_in_training_mode_is_said_to_be(model):
    network = model("Bart", attention_dropout=0.5).train()
    output = network(input_ids=torch.tensor([[5, 6, 7, 8, 9]]), output_attentions=True)
    with pytest.raises(TraceError, match=r"must sum to 1.*drops weights at random: call model.eval\(\) first"):
        Trace.from_huggingface(output)
    assert Trace.from_huggingface(output, sums_to_one=False).attention().sums_to_one is False


def test_other_faults_are_said_as_they_are(model):
    with torch.no_grad():
        output = model("Bert")(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    output.attentions[0][0, 1, 2, 0] = float("nan")
    with pytest.raises(TraceError, match=r"head 1, query 2, key 0: a weight must be a finite number, got nan$"):
        Trace.from_huggingface(output)
