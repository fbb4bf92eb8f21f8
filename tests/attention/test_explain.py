import pytest
import torch

import regard
from regard.attention.scope.padding import Padding

from ..costs import set_costs


def test_every_path_has_its_estimate_or_its_reason(monkeypatch):
    set_costs(monkeypatch, sdpa=1234, reference=2000)
    query, key = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 5, 4)
    explanation = regard.explain(query, key, key, scope=Padding.sample(1, 5))
    assert explanation.chosen == "sdpa"
    assert [path.name for path in explanation.paths[:2]] == ["sdpa", "reference"]
    lines = str(explanation).splitlines()
    assert lines[0] == "estimates for a test; -> runs"
    assert lines[1].split() == ["->", "sdpa", "1,234", "us", "0.0", "MiB"]
    assert lines[2].split()[:3] == ["reference", "2,000", "us"]
    assert any(line.split() == ["flash", "needs", "a", "GPU,", "got", "cpu"] for line in lines)
    assert len(lines) == 13


def test_it_is_what_attend_takes_and_raises_what_attend_raises():
    data = torch.zeros(1, 1, 2, 3)
    assert regard.explain(data, data, data, weights=True).chosen == "reference"
    assert regard.explain(data, data, data, impl="reference").chosen == "reference"
    with pytest.raises(ValueError, match="there is no statistic 'surprise'"):
        regard.explain(data, data, data, statistics=("surprise",))
