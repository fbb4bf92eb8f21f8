from regard.compare.outcome import Column
from regard.compare.strings import both, figure


def test_a_text_is_there_in_both_languages():
    assert both("seed", "种子") == '<span class="en" lang="en">seed</span><span class="zh" lang="zh-CN">种子</span>'


def test_a_figure_says_of_which_records_it_is_where_that_is_asked():
    assert figure(Column("valid", "exact"), parts=True) == ("valid exact", "验证集 完全匹配")
    assert figure(Column("valid", "exact"), parts=False) == ("exact", "完全匹配")
    assert figure(Column("", "seconds"), parts=True) == ("seconds", "用时（秒）")


def test_a_figure_without_words_goes_by_its_name_and_is_escaped():
    assert figure(Column("valid", "<b>"), parts=False) == ("&lt;b&gt;", "&lt;b&gt;")
