import pytest

from regard.config import AudioTextData, AudioToTextModel, SpeechSearch, SpeechTrain
from regard.errors import ConfigError
from regard.tasks._validate import heeded
from regard.tasks.transcribe.rules import RULES
from regard.tasks.transcribe.task import Config


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        (
            {"model": AudioToTextModel(encoder="transformer", convolution_kernel=7)},
            r"model\.convolution_kernel=7 would change nothing: it needs model\.encoder=conformer",
        ),
        ({"data": AudioTextData(coefficients=5)}, r"data\.coefficients=5 .* needs data\.features=mfcc"),
        ({"data": AudioTextData(bleu_tokenizer="char")}, r"data\.bleu_tokenizer=char .* needs BLEU"),
        (
            {"train": SpeechTrain(ctc_weight=0.0), "search": SpeechSearch(times="ctc")},
            r"search\.times=ctc .* needs a model that is trained with CTC \(train\.ctc_weight=0\.3\)",
        ),
    ],
)
def test_a_setting_without_an_effect_is_refused(change, needed):
    with pytest.raises(ConfigError, match=needed):
        heeded([Config(**change)], Config())


def test_settings_with_an_effect_are_taken():
    data = AudioTextData(features="mfcc", coefficients=5)
    search = SpeechSearch(ctc_weight=0.5, times="attention")
    heeded([Config(data=data, train=SpeechTrain(ctc_weight=0.3), search=search)], Config())


def test_rules_are_of_settings_that_there_are():
    config = Config()
    for path in RULES:
        part = config
        for name in path.split("."):
            part = getattr(part, name)
