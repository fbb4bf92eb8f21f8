from regard.tasks.speak.advice import advise

from .conftest import build_config


def test_nothing_is_said_early_or_where_all_is_well():
    assert advise([0.2, 0.2], 0.0, build_config()) is None
    assert advise([0.2, 0.5, 0.9], 0.0, build_config()) is None
    assert advise([0.2, 0.3, 0.4], 0.0, build_config()) is None  # it still gains


def test_an_attention_that_stands_still_gets_advice_on_what_is_not_yet_so():
    text = advise([0.2, 0.31, 0.32], 0.0, build_config(attention="location_sensitive", model={"reduction": 2}))
    assert "diagonality 0.32 after 3 evaluations" in text
    assert "train.guided_attention=10, now 1" in text
    assert "model.reduction=5, now 2" in text
    assert "model.attention=dynamic_convolution or forward" in text
    other = advise([0.2, 0.31, 0.32], 0.0, build_config(guided_attention=10.0))
    assert "guided_attention" not in other
    assert "model.attention" not in other
    transformer = build_config(model={"network": "transformer"}, attention="transformer")
    assert "model.network=tacotron with model.attention=dynamic_convolution" in advise([0.3, 0.3, 0.3], 0.0, transformer)


def test_words_that_free_running_misreads_are_a_warning_of_their_own():
    assert "free running it skips or repeats 25% of the words" in advise([0.8, 0.9, 0.9], 0.25, build_config())
