from dataclasses import replace

import pytest

from regard.config import Train
from regard.errors import ConfigError
from regard.models.packing import ROW_SETTINGS, check_model, check_settings

from .small import made

TRANSFORMER = {"encoder": "transformer", "decoder": "transformer", "attention": "transformer"}


@pytest.mark.parametrize("name", ROW_SETTINGS)
def test_settings_that_take_a_row_for_one_example_are_refused_by_name(name):
    value = {"scheduled_sampling": "linear", "sequence_loss": "minimum_risk"}.get(name, 0.5)
    settings = replace(Train(packing_length=64), **{name: value})
    with pytest.raises(
        ConfigError, match=rf"train\.packing_length=64 puts several .* train\.{name}={value} takes a row for one"
    ):
        check_settings(settings)
    check_settings(replace(settings, packing_length=0))
    check_settings(Train(packing_length=64))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"encoder": "recurrent"}, "needs a transformer encoder and decoder, got a recurrent encoder"),
        ({"decoder": "convolution"}, "needs a transformer encoder and decoder, got a convolution decoder"),
        ({"attention": "none"}, "needs an attention to the source, and this model has its source in one vector"),
        ({"attention": "coverage"}, r"the attention decoder\.0\.cross: it carries a state from query to query"),
        ({"attention": "monotonic"}, "it carries a state from query to query"),
        ({"attention": "local_m"}, "it has a window at a place of the row"),
        ({"attention": "memory_network"}, "it counts the age of a place along the row"),
        ({"attention": "location"}, "it has a score for each place of a row"),
        ({"attention": "additive+hard"}, "it draws where it looks"),
        ({"attention": "additive+local"}, "it goes by the positions of source and target"),
        ({"attention": "rotary"}, "it goes by the positions of source and target"),
        ({"self_attention": "blocks"}, r"the attention encoder\.0\.self: it has a scope that goes by the places of a row"),
        ({"self_attention": "landmarks"}, "it has a scope that goes by the places of a row"),
        ({"self_attention": "location"}, "it has a score for each place of a row"),
    ],
    ids=str,
)
def test_a_model_that_would_reach_into_the_next_example_is_refused(options, told):
    with pytest.raises(ConfigError, match=rf"train\.packing_length .*{told}"):
        check_model(made(**{**TRANSFORMER, **options}))
