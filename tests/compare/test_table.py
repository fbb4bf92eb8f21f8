from regard.compare.outcome import Column
from regard.compare.table import label, spreads, tabulate

from .conftest import compared, done, lost


def rows(text):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]


def test_a_row_for_each_combination_with_the_spread_over_seeds():
    found = compared(
        done("none", bleu=10.0),
        done("none", seed=1, bleu=12.0),
        done("additive", bleu=30.0),
        done("additive", seed=1, bleu=31.0),
    )
    head, none, additive = rows(tabulate(found))
    assert head == ["model.attention", "n", "bleu", "loss", "parameters", "seconds", "tokens/s"]
    assert none == ["none", "2", "11.0 ± 1.4", "89.0 ± 1.4", "28,550", "60.000 ± 0.000", "1,234 ± 0"]
    assert additive[2:4] == ["30.50 ± 0.71 *", "69.50 ± 0.71 *"]


def test_what_the_spread_does_not_tell_from_the_best_is_marked_too():
    found = compared(
        *(done(name, seed=seed, bleu=bleu + seed) for name, bleu in (("a", 30), ("b", 30.5), ("c", 5)) for seed in (0, 1))
    )
    assert [row[2] for row in rows(tabulate(found))[1:]] == ["30.50 ± 0.71 ~", "31.00 ± 0.71 *", "5.50 ± 0.71"]
    assert "these seeds do not distinguish them" in tabulate(found)


def test_what_did_not_train_has_a_row_and_a_reason():
    text = tabulate(
        compared(
            done("a|b"),
            lost("c"),
            lost("d", state="impossible", reason="7 heads"),
            lost("e", state="waiting", reason=None),
        )
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert [line.split(" | ")[1].strip() for line in table[3:]] == ["failed", "cannot be built", "not trained yet"]
    assert "a\\|b" in table[2]
    assert text.endswith("- c, seed 0 failed: no room\n- d cannot be built: 7 heads")


def test_one_training_each_is_said_to_tell_nothing_of_the_spread():
    text = tabulate(compared(done("none", bleu=10.0), done("additive")))
    assert "what a seed changes is not known: --seeds 3 shows it" in text
    assert [row[2] for row in rows(text)[1:]] == ["10.0", "30.0 *"]
    equal = tabulate(compared(done("none"), done("additive")))
    assert [row[2] for row in rows(equal)[1:]] == ["30.0 *", "30.0 *"]
    assert "* marks the best and what ties with it" in equal


def test_figures_say_of_which_records_they_are_where_there_are_two_sets():
    columns = [Column("test", "bleu"), Column("valid", "bleu"), Column("", "tokens_per_second")]
    assert [label(each, columns) for each in columns] == ["test bleu", "valid bleu", "tokens/s"]
    assert label(columns[0], columns[:1]) == "bleu"


def test_a_combination_without_a_number_has_no_spread():
    found = compared(done("a"), lost("b"))
    assert list(spreads(Column("valid", "bleu"), found.combinations())) == [("a",)]
