import re

import pytest
import torch

from regard.attention.multihead import MultiHead
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document

NUMBERS = torch.tensor([[0, 0, 1, 1], [5, 7, 7, 5]])


def test_a_query_sees_its_own_document_wherever_that_stands(draw):
    assert draw(Document(NUMBERS), batch=2, row=0) == ["1100", "1100", "0011", "0011"]
    assert draw(Document(NUMBERS), batch=2, row=1) == ["1001", "0110", "0110", "1001"]


def test_with_causal_it_is_a_row_of_packed_texts(draw):
    assert draw(Causal() & Document(NUMBERS), batch=2) == ["1000", "1100", "0010", "0011"]


def test_queries_at_other_positions_than_keys_have_numbers_of_their_own(draw):
    scope = Document(NUMBERS[:1], queries=torch.tensor([[1, 0, 0, 2, 1]]))
    assert draw(scope, queries=5) == ["0011", "1100", "1100", "0000", "0011"]
    assert draw(scope, queries=2, offset=3) == ["0000", "0011"]


def test_a_query_beyond_the_last_number_belongs_to_no_document(draw):
    assert draw(Document(NUMBERS[:1]), queries=3, offset=2) == ["0011", "0011", "0000"]


def test_numbers_come_from_the_tokens_that_begin_a_document():
    tokens = torch.tensor([[1, 8, 1, 9]])
    assert Document((tokens == 1).cumsum(-1)).keys.tolist() == [[1, 1, 2, 2]]


def test_a_memory_that_grows_step_by_step_equals_all_at_once():
    attention = MultiHead(8, heads=2, scope=Causal() & Document(NUMBERS))
    data = torch.randn(2, 4, 8)
    expected, memory = attention(data, attention.remember(data)).context, None
    for t in range(4):
        memory = attention.extend(memory, data[:, t : t + 1])
        torch.testing.assert_close(attention(data[:, t : t + 1], memory).context, expected[:, t : t + 1])


def test_its_sample_is_documents_of_three():
    assert Document.sample(2, 5).keys.tolist() == [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]


def test_another_batch_or_more_keys_than_numbers_are_refused():
    for batch, keys in ((3, 4), (2, 5)):
        text = f"Document was made for (2, 4) (batch, keys), and met a batch of {batch} with {keys} keys"
        with pytest.raises(ValueError, match=re.escape(text)):
            Document(NUMBERS).allowed(batch, 1, 1, keys, 0, torch.device("cpu"))


@pytest.mark.unhooked
def test_what_is_no_number_for_each_position_is_refused():
    text = "the whole number of a document at each, got torch.float32 of (2, 4)"
    with pytest.raises(ValueError, match=re.escape(f"Document needs keys of (batch, positions), {text}")):
        Document(NUMBERS.float())
    text = "the whole number of a document at each, got torch.int64 of (4,)"
    with pytest.raises(ValueError, match=re.escape(f"Document needs queries of (batch, positions), {text}")):
        Document(NUMBERS, queries=NUMBERS[0])


@pytest.mark.unhooked
def test_queries_of_another_batch_are_refused():
    with pytest.raises(ValueError, match="Document needs as many rows of queries as of keys, got 1 and 2"):
        Document(NUMBERS, queries=NUMBERS[:1])
