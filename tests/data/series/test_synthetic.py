import numpy as np
import pytest

from regard.data.series.reading import read_series
from regard.data.series.records import SeriesColumns
from regard.data.series.synthetic import generate_sales, write_csv


def test_equal_seeds_give_equal_series_and_others_differ():
    first, again, other = generate_sales(2, 0), generate_sales(2, 0), generate_sales(2, 1)
    np.testing.assert_array_equal(first[1].target, again[1].target)
    assert not np.array_equal(first[0].target, other[0].target)
    np.testing.assert_array_equal(generate_sales(5, 0)[1].target, first[1].target)


def test_sales_are_counts_that_promotions_raise():
    for shop in generate_sales(4, 0):
        sales, promotion = shop.target[:, 0], shop.known[:, 0]
        there = ~np.isnan(sales)
        assert (sales[there] == sales[there].round()).all()
        assert 0 < (~there).mean() < 0.05
        assert sales[there & (promotion == 1)].mean() > 1.2 * sales[there & (promotion == 0)].mean()


def test_a_week_is_a_season():
    [shop] = generate_sales(1, 0)
    logarithm = np.log1p(np.nan_to_num(shop.target[:, 0], nan=np.nanmean(shop.target)))
    less_trend = logarithm - np.convolve(np.pad(logarithm, 3, mode="edge"), np.ones(7) / 7, "valid")
    correlation = [np.corrcoef(less_trend[lag:], less_trend[:-lag])[0, 1] for lag in range(1, 11)]
    assert int(np.argmax(correlation)) + 1 == 7


def test_the_table_leaves_out_the_last_targets_and_is_read_again(tmp_path):
    shops = generate_sales(2, 0, days=40)
    (tmp_path / "sales.csv").write_bytes(write_csv(shops, forecast_steps=7))
    columns = SeriesColumns("date", ("sales",), (), ("promotion", "price"), ("region",), "shop")
    records = read_series(tmp_path / "sales.csv", columns)
    assert [len(record) for record in records] == [33, 33]
    assert len(records[0].future) == 7
    assert records[1].static == ("south",)
    assert records[0].known == pytest.approx(shops[0].known)
    np.testing.assert_array_equal(records[1].target, shops[1].target[:33])
