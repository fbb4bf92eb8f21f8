from regard.tasks import pronounce


def test_one_wrong_phone_of_four_in_one_word_of_two():
    figures = pronounce.measure(["t o m", "k a"], ["t o m", "s"], ["tom", "ca"], pronounce.Config())
    assert figures["exact"].value == 50
    assert figures["per"].value == 50  # one phone replaced and one too many, of four
