import pytest
import torch
from torch.testing import assert_close

from regard.data.audio.normalise import LEAST, Normalisation


def test_a_recording_is_normalised_by_its_own_mean_and_deviation():
    normalised = Normalisation()(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    assert normalised.tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_of_silence_nothing_is_amplified():
    features = torch.tensor([[0.0], [LEAST / 5]])
    assert_close(Normalisation()(features), torch.tensor([[-0.1], [0.1]]))


def test_a_corpus_is_measured_over_all_frames_however_they_are_cut_into_recordings():
    parts = [torch.tensor([[1.0, 0.0], [2.0, 0.0]]), torch.tensor([[6.0, 0.0]])]
    corpus = Normalisation.measure(parts)
    assert corpus == Normalisation("corpus", (3.0, 0.0), (round((14 / 3) ** 0.5, 5), 0.0))
    assert_close(torch.cat([corpus(part) for part in parts]), Normalisation()(torch.cat(parts)), atol=1e-5, rtol=0)
    assert corpus(torch.tensor([[3.0, LEAST]])).tolist() == [[0.0, 1.0]]


def test_without_normalisation_features_stay():
    features = torch.randn(3, 2)
    assert Normalisation("none")(features) is features


def test_another_kind_is_refused():
    with pytest.raises(ValueError, match="normalisation needs to be utterance, corpus or none, got 'max'"):
        Normalisation("max")
