import pytest

from regard.data.image.synthetic.split import split


def test_about_one_in_ten_is_held_out_and_nothing_is_in_both():
    drawn = [(number // 3, number) for number in range(300)]
    train, valid = split(drawn, lambda each: each[0])
    assert len(valid) == 30
    assert sorted(train + valid) == drawn
    assert not {key for key, _ in train} & {key for key, _ in valid}
    assert split(drawn, lambda each: each[0]) == (train, valid)
    assert split(drawn, lambda each: each[0], seed=1) != (train, valid)


def test_one_is_held_out_at_least():
    train, valid = split(["a", "b"], str)
    assert len(train) == len(valid) == 1
    with pytest.raises(ValueError, match="at least 2 different samples, got 1"):
        split(["a", "a"], str)
