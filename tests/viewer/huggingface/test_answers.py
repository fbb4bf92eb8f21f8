"""The tokens and rows of an answer, and its attention put together from the steps."""

from types import SimpleNamespace

import numpy as np
import torch

from regard.viewer.huggingface.answers import answers, ends, joined
from regard.viewer.trace import Trace

from .asking import ASKED, forced, inputs, row


def test_without_a_cache_every_step_returns_all_queries_and_the_last_is_taken(model, tokenizer):
    source = inputs(tokenizer, "Tom chases Jerry")
    found = [
        Trace.from_huggingface(
            model("Bart").generate(**source, num_beams=3, max_new_tokens=6, use_cache=cache, **ASKED), tokenizer
        )
        for cache in (True, False)
    ]
    for one, other in zip(*(trace.example().attentions for trace in found), strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


def test_a_prompt_of_several_tokens_gives_the_first_step_several_queries(model, tokenizer):
    network, source = model("Bart"), inputs(tokenizer, "Tom chases")
    prompt = torch.tensor([[2, 9, 17]])
    output = network.generate(**source, decoder_input_ids=prompt, max_new_tokens=5, **ASKED)
    trace = Trace.from_huggingface(output, tokenizer, source=source)
    truth = forced(network, row(source, 0), output.sequences[0, : len(trace.example().axes["written"])])
    np.testing.assert_allclose(trace.attention("decoder.1.cross").weights, truth["decoder.{}.cross"][1][0], atol=1e-4)
    np.testing.assert_allclose(trace.attention("decoder.0.self").weights, truth["decoder.{}.self"][0][0], atol=1e-4)
    assert trace.example().steps[0].query == 2  # the first two places are the prompt's


def step(*weights):
    """One layer of one head, for rows of these weights: (rows, 1, queries, keys)."""
    return (torch.tensor(weights)[:, None],)


def ending(with_tokens):
    """As much of a tokenizer as says what ends a text."""
    return SimpleNamespace(eos_token_id=with_tokens, convert_ids_to_tokens=str)


def test_an_answer_ends_where_its_rows_do():
    found = SimpleNamespace(
        sequences=torch.tensor([[7, 4, 5, 2], [7, 4, 2, 1]]), beam_indices=torch.tensor([[0, 1, 0], [0, 0, -1]])
    )
    first, second = answers(found, 3, None)
    assert (first.ids, first.prompt, first.rows) == ([7, 4, 5, 2], 1, [0, 1, 0])
    assert (second.ids, second.prompt, second.rows) == ([7, 4, 2], 1, [0, 0])


def test_without_a_search_an_answer_ends_at_its_first_end_and_has_its_own_row():
    output = SimpleNamespace(sequences=torch.tensor([[7, 8, 4, 3, 2], [7, 2, 5, 6, 6]]))
    first, second = answers(output, 3, ending(with_tokens=[2, 3]))
    assert (first.ids, first.prompt, first.rows) == ([7, 8, 4, 3], 2, [0, 0])
    assert (second.ids, second.prompt, second.rows) == ([7, 2, 5, 6, 6], 2, [1, 1, 1])  # an end in the prompt is none
    assert (ends(None), ends(ending(with_tokens=2)), ends(ending(with_tokens=None))) == ([], [2], [])


def test_steps_are_joined_by_the_row_that_each_token_came_from():
    steps = [step([[1.0]], [[1.0]]), step([[0.25, 0.75]], [[0.5, 0.5]]), step([[0.0, 0.0, 1.0]], [[0.25, 0.5, 0.25]])]
    [joint] = joined(steps, [0, 1, 0], own=True)
    assert joint.tolist() == [[[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]]]
    seen = [step([[0.5, 0.5]], [[1.0, 0.0]]), step([[0.0, 1.0]], [[0.75, 0.25]])]
    assert joined(seen, [0, 1], own=False)[0].tolist() == [[[0.5, 0.5], [0.75, 0.25]]]


def test_a_cache_of_fixed_size_and_one_that_slides_are_put_in_their_places():
    fixed = [step([[1.0, 0.0, 0.0, 0.0]]), step([[0.25, 0.75, 0.0, 0.0]])]
    assert joined(fixed, [0, 0], own=True)[0].tolist() == [[[1, 0], [0.25, 0.75]]]
    sliding = [step([[1.0]]), step([[0.25, 0.75]]), step([[0.5, 0.5]])]  # the third step has forgotten the first key
    assert joined(sliding, [0, 0, 0], own=True)[0].tolist() == [[[1, 0, 0], [0.25, 0.75, 0], [0, 0.5, 0.5]]]
