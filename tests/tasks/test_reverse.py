from regard.tasks import reverse


def test_the_target_is_the_source_backwards():
    training, validation = reverse.synthesise(50, seed=1)
    assert all(record.target == record.source[::-1] for record in (*training, *validation))
