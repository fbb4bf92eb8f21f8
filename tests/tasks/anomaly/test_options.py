from regard.registry import task_options


def test_the_threshold_is_an_option_of_predict():
    [option] = [option for option in task_options() if option.name == "threshold"]
    assert option.commands == ("predict",)
    assert not option.is_file
