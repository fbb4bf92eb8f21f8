from regard.cli._comparison import format_table, is_compared, metrics_of_table

FIGURES = {"loss": 0.5, "f1": 50.0, "auc": 7.25, "k_means.f1": 40.0, "k_means.auc": None, "pca.f1": 100.0}


def test_metrics_of_other_predictors_have_their_name_before_a_dot():
    assert [name for name in FIGURES if is_compared(name)] == ["k_means.f1", "k_means.auc", "pca.f1"]
    assert metrics_of_table(FIGURES) == ["f1", "auc"]
    assert metrics_of_table({"loss": 0.5}) == []


def test_others_stand_below_the_model():
    assert format_table(FIGURES).splitlines() == [
        "             f1     auc",
        "model     50.00  7.2500",
        "k_means   40.00       -",
        "pca      100.00       -",
    ]
