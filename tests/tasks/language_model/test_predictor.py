import math

import pytest
import torch

from regard.data.special_tokens import BOS
from regard.errors import DataError
from regard.tasks.language_model.predictor import LanguagePredictor


def test_a_text_is_continued(language):
    assert isinstance(language, LanguagePredictor)
    answers = language.predict(["Tom", "a cat", ""], beam=2)
    assert [answer.text.startswith(text) for answer, text in zip(answers, ("Tom ", "a cat ", ""), strict=True)] == [True] * 3
    assert "".join(language.stream("a dog")) == language.predict("a dog").text
    assert language.predict("Tom", prefix=" chases").text.startswith("Tom chases")


def test_an_unknown_beginning_is_refused(language):
    assert not language.fits("Spike")
    with pytest.raises(DataError, match="cannot continue 'Spike'"):
        language.continue_inputs(["Spike"])


def test_perplexity_is_that_of_the_log_probabilities(language, texts):
    metrics = language.evaluate(str(texts))
    assert set(metrics) == {"perplexity", "word_perplexity"}
    nll, tokens = 0.0, 0
    for line in texts.read_text().splitlines():
        target = language.codec.encode(language.read(line)._replace(target=line)).target
        with torch.no_grad():
            memory = language.model.encode(language.codec.collate([language.codec.encode(language.read(""))]))
            logs = language.model.decoder(torch.tensor([[BOS, *target[:-1]]]), memory).output[0].log_softmax(-1)
        nll -= sum(float(row[token]) for row, token in zip(logs, target, strict=True))
        tokens += len(target)
    assert metrics["perplexity"].value == pytest.approx(math.exp(nll / tokens), rel=1e-4)
    assert metrics["word_perplexity"].value == pytest.approx(metrics["perplexity"].value)  # words are tokens
    assert metrics["perplexity"].value < 6 < language.codec.target.size
    assert "per word" in metrics["word_perplexity"].signature


def test_choices_are_traced_from_the_beginning_on(language):
    trace = language.trace("a cat")
    assert [choice.token for choice in trace.examples[0].steps][:2] == ["a", "cat"]
