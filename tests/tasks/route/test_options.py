from regard.registry import task_options
from regard.tasks.route.options import OPTIONS


def test_the_number_of_samples_is_an_option_of_predict_and_evaluate():
    [option] = [option for option in task_options() if option.name == "samples"]
    assert option.commands[:2] == OPTIONS["samples"]["commands"] == ("predict", "evaluate")
    assert not option.is_file
