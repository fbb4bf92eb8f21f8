import torch
from torch.nn import functional as F

from regard.decoding.engines.eager.kv_cache import MIN_COMPACTION, AncestorMask, KVCache


def run(steps: int, sentences: int, beams: int, leave_at: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """What the cache finds at the last of so many random steps, and what plain attention over copied histories finds."""
    torch.manual_seed(steps + beams)
    heads, dim = 2, 4
    cache, ancestors, width = KVCache(heads), AncestorMask(sentences), 1
    past = torch.empty(2, sentences, 0, heads, dim)  # keys and values of each row's own past
    found = expected = torch.empty(0)
    for step in range(steps):
        after = beams if step else 1
        parents = torch.randint(0, width, (sentences, after)) + torch.arange(sentences)[:, None] * width
        if step == leave_at:
            staying = torch.tensor([0, 2])
            cache.leave(staying)
            ancestors.leave(staying)
            parents, sentences = parents[staying], 2
        if ancestors.crowded:
            cache.take(ancestors.squeeze())
        rows = sentences * after
        threefold = torch.randn(rows, 3 * heads * dim)
        ancestors.grow(rows, parents.flatten() if step else None)
        found = cache(threefold, ancestors, dim**-0.5)
        query, key, value = threefold.view(rows, 3, heads, dim).unbind(1)
        past = torch.cat((past[:, parents.flatten()] if step else past, torch.stack((key, value))[:, :, None]), dim=2)
        keys, values = past.transpose(2, 3)
        expected = F.scaled_dot_product_attention(query[:, :, None], keys, values).flatten(1)
        width = after
    return found, expected


def test_rows_look_at_their_own_past_however_they_are_reordered():
    for steps in (1, 2, 5, 17):
        torch.testing.assert_close(*run(steps, sentences=3, beams=4))


def test_squeezing_out_dead_places_changes_nothing():
    torch.testing.assert_close(*run(3 * MIN_COMPACTION // 4, sentences=2, beams=5))


def test_one_row_a_sentence_needs_no_mask():
    torch.testing.assert_close(*run(40, sentences=3, beams=1))


def test_sentences_that_leave_take_their_past_along():
    torch.testing.assert_close(*run(9, sentences=3, beams=3, leave_at=6))
    torch.testing.assert_close(*run(9, sentences=3, beams=1, leave_at=6))


def test_dead_places_go_and_the_room_stays_small():
    ancestors = AncestorMask(1)
    ancestors.grow(1, None)
    for _ in range(500):
        if ancestors.crowded:
            ancestors.squeeze()
        ancestors.grow(4, torch.zeros(4, dtype=torch.long))
    assert ancestors.mask.shape[2] == ancestors.places < 4 * 500
    assert int((ancestors.mask[0, 0] == 0).sum()) == 501
