import numpy as np
import pytest
import torch

from regard.data.series.batch import SeriesSource
from regard.tasks.anomaly.baselines import KMeans, Pca, draw_scores, flatten


def source(windows):
    data = torch.as_tensor(windows, dtype=torch.float32)[..., None]
    nothing = torch.zeros(len(data), data.shape[1], 0)
    one = torch.ones(len(data), 1)
    observed = torch.ones_like(data, dtype=torch.bool)
    keep = torch.ones(data.shape[:2], dtype=torch.bool)
    return SeriesSource(data, keep, observed, nothing, nothing, torch.zeros(len(data), 0, dtype=torch.int64), 0 * one, one)


def test_k_means_has_the_means_of_the_clusters_as_centres():
    windows = torch.tensor([[0.0, 0], [0, 1], [9, 9], [9, 10], [9, 11]])
    detector = KMeans(2, 2)
    detector.fit(windows)
    assert sorted(detector.centres.tolist()) == [[0, 0.5], [9, 10]]
    assert detector(source([[9, 13]])).tolist() == pytest.approx(np.array([[3, 3]]) / np.sqrt(2))


def test_k_means_is_a_function_of_its_seed():
    windows = torch.randn(200, 4)
    centres = []
    for seed in (0, 0, 1):
        detector = KMeans(5, 4)
        detector.fit(windows, seed)
        centres.append(detector.centres)
    assert torch.equal(centres[0], centres[1])
    assert not torch.equal(centres[0], centres[2])


def test_fewer_windows_than_clusters_are_centres_all_the_same():
    detector = KMeans(5, 2)
    detector.fit(torch.tensor([[0.0, 0], [1, 1]]))
    assert detector(source([[0, 0], [1, 1]])).abs().max() == 0


def test_pca_scores_the_distance_from_its_components():
    steps = torch.linspace(-1, 1, 50)
    detector = Pca(3, 0.9)
    detector.fit(torch.stack((steps, 2 * steps, 0 * steps), 1))
    scores = detector(source([[1, 2, 0], [1, 2, 3], [2, -1, 0]]))[:, 0] * np.sqrt(3)
    assert scores.tolist() == pytest.approx([0, 3, np.sqrt(5)], abs=1e-5)


def test_components_explain_the_share_of_the_variance():
    windows = torch.randn(4000, 4) * torch.tensor([10.0, 5, 1, 0.1])
    counts = []
    for variance in (0.7, 0.9, 0.9999):
        detector = Pca(4, variance)
        detector.fit(windows)
        counts.append(int((detector.components.norm(dim=1) > 0).sum()))
    assert counts == [1, 2, 4] or counts == [1, 2, 3]


def test_a_missing_value_is_the_mean():
    window = source([[5.0, 1.0]])
    missing = window._replace(observed=torch.tensor([[[False], [True]]]))
    assert flatten(missing).tolist() == [[0, 1]]


def test_random_scores_are_a_function_of_their_seed():
    assert draw_scores(5, 1).tolist() == draw_scores(5, 1).tolist()
    assert draw_scores(5, 1).tolist() != draw_scores(5, 2).tolist()
