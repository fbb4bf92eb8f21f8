from regard.interop.huggingface.families import FAMILIES, LACKING, family


def test_there_is_one_family_for_norms_in_each_place():
    assert family("post", embedding_norm=False) == "marian"
    assert family("post", embedding_norm=True) == "bart"
    assert family("pre", embedding_norm=True) == "mbart"
    assert family("pre", embedding_norm=False) == "pegasus"
    assert FAMILIES["m2m_100"].positions == "spaced_waves"
    assert family("rms", embedding_norm=False) == "t5"


def test_none_is_both_known_and_lacking():
    assert not FAMILIES.keys() & LACKING.keys()
