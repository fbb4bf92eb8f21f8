from regard.errors import FailedError, Interrupted, RefusedError, TrainingError, UnwritableError


def test_one_class_catches_all_that_ends_a_training_and_an_interruption_is_an_exit():
    assert issubclass(RefusedError, TrainingError)
    assert issubclass(FailedError, TrainingError)
    assert isinstance(Interrupted(143), SystemExit)
    assert Interrupted(143).code == 143


def test_output_that_cannot_be_written_is_for_the_user_to_mend():
    from regard.cli import MISTAKES

    assert issubclass(UnwritableError, MISTAKES)  # exit code 2
    assert issubclass(UnwritableError, FailedError)
