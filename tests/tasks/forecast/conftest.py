import pytest

from regard import api

from .tables import read_settings, write_table


@pytest.fixture(scope="session")
def sales(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("forecast") / "sales.csv")


@pytest.fixture(scope="session")
def future(tmp_path_factory):
    """The same table with promotions for five more days."""
    return write_table(tmp_path_factory.mktemp("forecast") / "future.csv", future=5)


@pytest.fixture(scope="session")
def run(tmp_path_factory, sales):
    directory = tmp_path_factory.mktemp("forecast") / "run"
    api.train_config("forecast", read_settings(sales), directory, quiet=True)
    return directory


@pytest.fixture
def predictor(run):
    from regard.inference.load import load

    return load(run, "cpu")
