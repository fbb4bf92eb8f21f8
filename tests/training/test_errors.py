from regard.training.errors import FailedError, Interrupted, RefusedError, TrainingError


def test_one_class_catches_all_that_ends_a_training_and_an_interruption_is_an_exit():
    assert issubclass(RefusedError, TrainingError)
    assert issubclass(FailedError, TrainingError)
    assert isinstance(Interrupted(143), SystemExit)
    assert Interrupted(143).code == 143
