import regard.decoding


def test_everything_it_promises_is_there():
    for name in regard.decoding.__all__:
        assert callable(getattr(regard.decoding, name))
