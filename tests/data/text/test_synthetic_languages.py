import pytest

from regard.data.text import synthetic_languages


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("tom", "t o m"),
        ("cheenga", "tʃ eː ŋ a"),
        ("cace", "k a s e"),
        ("ci", "s i"),
        ("shuuth", "ʃ uː θ"),
        ("canc", "k a n k"),
    ],
)
def test_words_are_said_by_the_rules(word, said):
    assert " ".join(synthetic_languages.phones(word)) == said


@pytest.mark.parametrize(
    ("lemma", "case", "number", "expected"),
    [
        ("tomel", "NOM", "SG", "tomel"),
        ("tomel", "NOM", "PL", "tomelen"),
        ("tomel", "DAT", "SG", "tomelt"),
        ("tomel", "DAT", "PL", "tomelent"),
        ("tila", "GEN", "PL", "tilans"),
        ("tila", "NOM", "PL", "tilan"),
    ],
)
def test_forms_follow_the_rules(lemma, case, number, expected):
    assert synthetic_languages.form(lemma, case, number) == expected


@pytest.mark.parametrize("draw", [synthetic_languages.spelling, synthetic_languages.inflection])
def test_samples_are_different_and_the_same_for_one_seed(draw):
    records = draw(200, seed=3)
    assert records == draw(200, seed=3)
    assert records != draw(200, seed=4)
    assert len({record.source for record in records}) == 200
