from regard.tasks import translate


def test_chinese_is_cut_into_characters_for_bleu_and_other_text_by_the_usual_rules():
    config = translate.Config()
    assert "tok:zh" in translate.measure(["汤姆 追逐"], ["汤姆 追逐"], ["Tom"], config)["bleu"].signature
    assert "tok:13a" in translate.measure(["a b c d."], ["a b c d."], ["Tom"], config)["bleu"].signature


def test_bleu_is_also_told_by_the_length_of_the_source():
    outputs = ["a b c d e"] * 3
    found = translate.measure(outputs, outputs, ["w " * 5, "w " * 15, "w " * 80], translate.Config())["bleu_by_length"]
    assert [(each.first, each.last) for each in found] == [(0, 10), (11, 20), (61, None)]
