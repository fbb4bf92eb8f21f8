from regard.data.batch import pad
from regard.data.modality import Batches


class Numbered:
    def batch(self, step):
        return pad([[step]])


def test_what_gives_any_batch_by_its_number_is_batches():
    assert isinstance(Numbered(), Batches)
    assert not isinstance(object(), Batches)
