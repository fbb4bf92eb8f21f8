from html.parser import HTMLParser

from regard.compare.grid import lay, table, trainings

from .conftest import compared, done, lost

TWO = ("model.attention", "model.decoder")


class Tables(HTMLParser):
    """Rows of (tag, attributes, text), and whatever was not closed."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in ("line", "circle"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append((tag, dict(attributes), []))

    def handle_endtag(self, tag):
        if tag not in ("line", "circle"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "title" not in self.open and self.rows and self.rows[-1]:
            self.rows[-1][-1][2].append(data)

    def texts(self, row):
        return ["".join(said) for _, _, said in self.rows[row]]


def grid():
    outcomes = [done("none", "recurrent", seed=seed, bleu=10.0 + seed) for seed in (0, 1)]
    outcomes += [lost("none", "transformer", state="impossible", reason='"7" <heads>', seed=seed) for seed in (0, 1)]
    outcomes += [done("<i>", "recurrent", seed=seed, bleu=10.5 + seed) for seed in (0, 1)]
    outcomes += [done("<i>", "transformer", bleu=30.0), lost("<i>", "transformer", seed=1)]
    return lay(compared(*outcomes, settings=TWO))


def test_the_last_setting_makes_groups_of_columns_with_a_best_of_their_own():
    found = grid()
    assert found.rows == [("none",), ("<i>",)]
    assert found.groups == [("recurrent",), ("transformer",)]
    bleu = found.columns[0]
    assert found.marks[bleu] == {
        ("none", "recurrent"): "near",
        ("<i>", "recurrent"): "best",
        ("<i>", "transformer"): "best",
    }
    assert found.marks[found.columns[-1]] == {}, "a cost is neither good nor bad"


def test_one_setting_has_one_group_without_a_name():
    found = lay(compared(done("none"), done("additive")))
    assert (found.rows, found.groups) == ([("none",), ("additive",)], [()])


def test_the_table_is_whole_and_every_row_as_wide_as_its_head():
    shown = Tables(table(grid()))
    assert shown.open == []
    over, under, none, other = shown.rows
    width = len(grid().columns)
    assert len(under) == 2 * width
    assert [int(each[1]["colspan"]) for each in over[1:]] == [width, width]
    assert len(other) == 1 + 2 * width
    assert len(none) == 1 + width + 1
    assert none[-1][1]["title"] == '"7" <heads>'
    assert shown.texts(2)[-1] == "cannot be built无法构建"
    assert shown.texts(3)[0] == "<i>", "a name is shown as it is written, and is no markup"


def test_a_cell_has_its_mean_its_sign_its_strip_and_how_many_seeds_it_lacks():
    shown = Tables(table(grid()))
    none, other = shown.rows[2], shown.rows[3]
    assert none[1][1] == {"class": "c0 edge near", "data-key": "0-0", "data-value": "10.5"}
    assert shown.texts(2)[1] == "10.50 ± 0.71≈"
    assert other[1][1]["class"] == "c0 edge best"
    assert shown.texts(3)[1 + len(grid().columns)] == "30.0★n = 1"
    assert table(grid()).count("<svg") == 2 * 3, "a strip for BLEU and for the loss of each of the three that trained"


def test_every_training_has_its_interval():
    shown = Tables(trainings(grid()))
    assert len(shown.rows) == 1 + 8
    assert shown.texts(1)[:6] == ["none", "recurrent", "0", "trained已训练", "none,recurrent-0", "10.0 [9.00, 11.0]"]
    assert shown.texts(3)[5] == "–"
