"""What the model read, in any form that people hold it in, and what of it is padding."""

from copy import copy

import pytest
import torch

from regard.data.axis import Image, Index
from regard.viewer.huggingface.ids import line_of, placed
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Trace

from .asking import inputs


def test_padding_is_told_by_the_tokenizer_where_there_is_no_mask(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry", "Tom")
    with torch.no_grad():
        output = model("Bart")(**source, output_attentions=True)
    examples = Trace.from_huggingface(output, tokenizer, source=source["input_ids"]).examples
    assert examples[1].axes["source"].labels == ["Tom"]


def test_without_tokens_places_are_numbered(model):
    with torch.no_grad():
        output = model("Bart")(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    axes = Trace.from_huggingface(output).example().axes
    assert all(isinstance(axis, Index) and len(axis) == 3 for axis in axes.values())


def test_a_picture_can_be_the_source(model):
    with torch.no_grad():
        output = model("Bert")(input_ids=torch.tensor([[5, 6, 7, 8, 9]]), output_attentions=True)
    axis = Image((2, 2), (8, 8), prefix=("CLS",))
    assert Trace.from_huggingface(output, source=axis).example().axes["tokens"] is axis
    with pytest.raises(TraceError, match="source has 4 places, and attention saw 5; give what the model was given"):
        Trace.from_huggingface(output, source=Image((2, 2), (8, 8)))
    assert Trace.from_huggingface(output, source=list("abcde")).example().axes["tokens"].labels == list("abcde")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (torch.tensor([[5, 6]]), "source has 2 tokens, and attention saw 3 places; give what the model was given"),
        (torch.tensor([[5, 6, 7]] * 2), "source has 2 rows and the model answered for 1; give what the model was given"),
        ("Tom", "source: needs what the tokenizer returned, token numbers, tokens or an axis, got str"),
        ([], "source: needs what the tokenizer returned"),
        ([0.5, 1.5, 2.5], "source: a token is a number or a text, got float"),
    ],
)
def test_a_source_that_does_not_fit_is_named(model, source, said):
    with torch.no_grad():
        output = model("Bert")(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    with pytest.raises(TraceError) as caught:
        Trace.from_huggingface(output, source=source)
    assert said in str(caught.value)


def test_several_answers_may_belong_to_one_row():
    batch = torch.tensor([[5, 6], [7, 8]])
    assert [line_of(batch, (number, 4), "source") for number in range(4)] == [[5, 6], [5, 6], [7, 8], [7, 8]]
    assert line_of([5, 6], (3, 4), "source") == [5, 6]  # one text is everybody's


def test_padding_at_either_end_of_a_source_is_gone_and_never_from_its_middle(tokenizer):
    for line, what, kept in (
        ([1, 1, 5, 1, 6, 1], "source", [2, 3, 4]),
        ([1, 1, 5, 1, 6, 1], "written", [0, 1, 2, 3, 4]),
        ([1, 1, 1], "source", [0, 1, 2]),  # padding alone is all that there is to show
    ):
        assert placed({"input_ids": line}, (0, 1), len(line), tokenizer, None, what)[1] == kept
    ending = copy(tokenizer)
    ending.pad_token = "</s>"  # a model that pads with its end
    assert placed({"input_ids": [5, 6, 2, 2]}, (0, 1), 4, ending, None, "source")[1] == [0, 1, 2, 3]


def test_a_mask_says_more_than_the_tokens():
    given = {"input_ids": [[5, 6, 7]], "attention_mask": [[0, 1, 0]]}
    axis, kept = placed(given, (0, 1), 3, None, "en", "source")
    assert (axis.labels, axis.lang, kept) == (["6"], "en", [1])
