import torch

from regard.decoding.engines.cuda import topk as file
from regard.decoding.engines.cuda.topk import select_top_tokens
from regard.decoding.logprobs import compute_logprobs, mask_special_tokens
from regard.decoding.topk import select_highest


def test_it_finds_what_the_reference_finds_piece_by_piece(monkeypatch):
    monkeypatch.setattr(file, "CHUNK", 3)
    logits = torch.randn(7, 50)
    for count in (1, 4):
        values, tokens = select_top_tokens(logits, lambda found: found, count)
        right, places = select_highest(mask_special_tokens(compute_logprobs(logits)), count)
        torch.testing.assert_close(values, right)
        assert tokens.tolist() == places.tolist()


def test_half_precision_is_widened_and_double_kept():
    logits = torch.randn(2, 9)
    for dtype, right in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        assert select_top_tokens(logits.to(dtype), lambda found: found, 2)[0].dtype == right


def test_of_equal_tokens_the_lowest_number_is_the_likeliest():
    _values, tokens = select_top_tokens(torch.tensor([[9.0, 9.0, 1.0, 4.0, 4.0]]), lambda found: found, 1)
    assert tokens.tolist() == [[3]]


def test_what_has_no_distribution_begins_with_nan():
    rows = torch.tensor([[0.0, 0.0, float("nan"), 1.0], [-torch.inf] * 4, [0.0, 0.0, 1.0, torch.inf], [0.0] * 4])
    for count in (1, 2):
        assert select_top_tokens(rows, lambda found: found, count)[0][:, 0].isnan().tolist() == [True, True, True, False]


def test_a_gpu_that_lacks_something_takes_the_steps(monkeypatch):
    class Pretending(torch.Tensor):
        is_cuda = True

    monkeypatch.setattr(file.capability, "find_obstacle", lambda device, dtype: "needs another GPU")
    monkeypatch.setattr(file, "load_kernel", None)
    _values, tokens = select_top_tokens(
        torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]]).as_subclass(Pretending), lambda found: found, 1
    )
    assert tokens.tolist() == [[4]]
