from regard.registry import task_options
from regard.tasks.transcribe.options import OPTIONS


def test_times_and_hotwords_are_options_and_hotwords_a_file():
    options = {option.name: option for option in task_options()}
    assert set(OPTIONS) <= set(options)
    assert {"predict", "align"} <= set(options["times"].commands)
    assert {"predict", "evaluate"} <= set(options["hotwords"].commands)
    assert options["hotwords"].is_file
    assert not options["times"].is_file
