from regard.interop.huggingface.families import FAMILIES, LACKING, family


def test_there_is_one_family_for_norms_in_each_place():
    assert family("post", norm_embedding=False) == "marian"
    assert family("post", norm_embedding=True) == "bart"
    assert family("pre", norm_embedding=True) == "mbart"
    assert family("pre", norm_embedding=False) == "pegasus"
    assert FAMILIES["m2m_100"].positions == "spaced_waves"
    assert family("rms", norm_embedding=False) == "t5"


def test_none_is_both_known_and_lacking():
    assert not FAMILIES.keys() & LACKING.keys()
