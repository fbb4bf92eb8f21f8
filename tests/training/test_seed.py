import torch

from regard.training.seed import deterministic, mix_seed, reseed

CPU = torch.device("cpu")


def test_what_a_step_draws_depends_on_seed_and_step_alone():
    reseed(1, 5, CPU)
    first = torch.rand(3)
    torch.rand(100)
    reseed(1, 5, CPU)
    assert torch.equal(torch.rand(3), first)
    reseed(1, 6, CPU)
    assert not torch.equal(torch.rand(3), first)


def test_no_two_of_many_seeds_and_steps_meet():
    numbers = {mix_seed(seed, step) for seed in range(20) for step in range(500)}
    assert len(numbers) == 10_000
    assert all(0 <= number < 2**63 for number in numbers)


def test_half_of_the_bits_change_from_one_step_to_the_next():
    flips = [bin(mix_seed(0, step) ^ mix_seed(0, step + 1)).count("1") for step in range(300)]
    assert 30 < sum(flips) / len(flips) < 33


def test_determinism_is_asked_for_and_given_back():
    before = torch.are_deterministic_algorithms_enabled()
    with deterministic(True):
        assert torch.are_deterministic_algorithms_enabled()
    with deterministic(False):
        assert torch.are_deterministic_algorithms_enabled() == before
    assert torch.are_deterministic_algorithms_enabled() == before
