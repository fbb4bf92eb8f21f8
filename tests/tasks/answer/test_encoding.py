import torch
from torch.testing import assert_close

from regard.attention.mechanisms.memory_network import sentences
from regard.tasks.answer.encoding import MaskedEncoder, SentenceEncoder, count_behind, reverse_rows, unroll_gru

WORDS = torch.tensor([[[4, 5, 6], [7, 4, 0]], [[5, 0, 0], [0, 0, 0]]])


def test_sentences_are_those_of_position_encoding_in_every_set():
    torch.manual_seed(0)
    encoder = SentenceEncoder(9, 6, sets=2)
    encoded = encoder(WORDS)
    assert encoded.shape == (2, 2, 2, 6)
    for number in range(2):
        table = encoder.embedding.weight[:, number * 6 : number * 6 + 6]
        assert_close(encoded[:, :, number], sentences(table[WORDS], WORDS != 0).data)
    assert_close(encoder(WORDS, slice(1, 2))[:, :, 0], encoded[:, :, 1])


def test_a_bag_is_the_sum_of_its_words():
    encoder = SentenceEncoder(9, 4, encoding="bag")
    assert_close(encoder(WORDS)[0, 1, 0], encoder.embedding.weight[7] + encoder.embedding.weight[4])


def test_a_mask_weighs_words_by_position_and_leaves_out_padding_behind_it():
    encoder = MaskedEncoder(2, 2)
    with torch.no_grad():
        encoder.mask[1] = 3.0
    vectors = torch.ones(1, 4, 2)
    vectors[:, 2:] = 0.0
    assert encoder(vectors).tolist() == [[4.0, 4.0]]


def test_ages_count_the_sentences_behind_and_noise_makes_them_older():
    keep = torch.tensor([[True, True, True, False]])
    assert count_behind(keep).tolist() == [[2, 1, 0, 0]]
    assert count_behind(keep, 1.0 - 1e-9).tolist() == [[4, 2, 0, 0]]


def test_rows_are_reversed_without_their_padding():
    data = torch.arange(4.0)[None, :, None]
    assert reverse_rows(data, torch.tensor([[True, True, True, False]]))[0, :, 0].tolist() == [2.0, 1.0, 0.0, 3.0]


def test_a_gru_step_by_step_equals_one_call():
    rnn, data = torch.nn.GRU(4, 4, batch_first=True), torch.randn(2, 5, 4)
    assert_close(unroll_gru(rnn, data), rnn(data)[0])
