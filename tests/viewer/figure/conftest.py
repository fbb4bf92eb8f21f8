import pytest


@pytest.fixture
def loose(monkeypatch):
    """Figures that are not laid out until they are drawn, for tests that ask what is in them and not where: 4 times as fast."""
    from regard.viewer.figure import heatmap
    from regard.viewer.figure.style import Drawing

    monkeypatch.setattr(Drawing, "settle", lambda self: None)
    monkeypatch.setattr(heatmap, "_settle", lambda *given: None)
