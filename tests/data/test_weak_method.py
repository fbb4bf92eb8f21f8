import gc
import weakref

import pytest

from regard.data.weak_method import weakly


class Owner:
    def __init__(self):
        self.kept = weakly(self.twice)

    def twice(self, number: int) -> int:
        return 2 * number


def test_an_owner_may_keep_its_method_and_is_gone_with_the_last_who_holds_it():
    gc.disable()
    try:
        owner = Owner()
        kept, seen = owner.kept, weakref.ref(owner)
        assert kept(4) == 8
        del owner
        assert seen() is None
    finally:
        gc.enable()
    with pytest.raises(
        ReferenceError, match="the owner of this method is gone; keep it for as long as the method is called"
    ):
        kept(4)
