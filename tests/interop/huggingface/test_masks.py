"""Masks that know the keys of each tile of queries."""

import pytest
import torch

from regard.interop.huggingface import attention, masks

from . import zoo


def window(queries, keys, width):
    rows, columns = torch.arange(queries)[:, None] + keys - queries, torch.arange(keys)
    return ((columns <= rows) & (columns > rows - width))[None, None]


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(masks, "TILE", 8)


def test_the_tiles_of_a_window_hold_every_allowed_key_and_no_whole_row(small_tiles):
    mask = window(50, 50, 6)
    tiles = masks.find_tiles(mask)
    assert [(tile.first_query, tile.last_query) for tile in tiles] == [(n, min(n + 8, 50)) for n in range(0, 50, 8)]
    covered = torch.zeros_like(mask)
    for tile in tiles:
        covered[:, :, tile.first_query : tile.last_query, tile.first_key : tile.last_key] = True
    assert not (mask & ~covered).any()
    assert covered.sum() < 0.4 * mask.numel()


def test_short_and_dense_masks_have_no_tiles(small_tiles):
    assert masks.find_tiles(window(12, 12, 3)) is None
    assert masks.find_tiles(torch.ones(1, 1, 64, 64, dtype=torch.bool)) is None
    assert masks.find_tiles(window(64, 64, 6).float()) is None


def test_a_tile_whose_queries_see_nothing_is_empty_and_its_context_zero(small_tiles):
    mask = window(32, 32, 4)
    mask[:, :, 8:16] = False
    query, key, value = torch.randn(3, 1, 2, 32, 4)
    mask.regard_tiles = masks.find_tiles(mask), mask._version
    context = attention.run_fused(query, key, value, mask, False, 0.0, None)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    seen = mask.any(-1)[0, 0]
    torch.testing.assert_close(context[:, :, seen], expected[:, :, seen])


def test_tiles_of_a_mask_that_was_written_to_are_forgotten(small_tiles):
    mask = window(32, 32, 4)
    mask.regard_tiles = masks.find_tiles(mask), mask._version
    assert masks.tiles_of(mask) is not None
    assert masks.tiles_of(mask[:, :, :, :16]) is None
    mask[0, 0, 31, 0] = True
    assert masks.tiles_of(mask) is None


def test_a_model_with_a_window_runs_by_tiles_and_answers_as_eager_does(small_tiles, monkeypatch):
    ids = torch.randint(3, zoo.VOCABULARY, (2, 40), generator=torch.Generator().manual_seed(0))
    counted = []
    tiles_of = masks.tiles_of
    monkeypatch.setattr(masks, "tiles_of", lambda mask: counted.append(tiles_of(mask)) or counted[-1])
    models = [zoo.build("mistral", implementation) for implementation in ("regard", "eager")]
    keep = torch.ones_like(ids)
    keep[0, :5] = 0
    with torch.no_grad():
        ours, theirs = (model(ids, attention_mask=keep).logits for model in models)
    assert counted
    assert all(tiles is not None for tiles in counted)
    torch.testing.assert_close(ours[keep.bool()], theirs[keep.bool()], atol=1e-5, rtol=1e-5)


def test_families_without_sdpa_get_a_mask_that_is_added():
    assert masks.needs_added_mask(type(zoo.build("pegasus_x", "regard")).__module__)
    assert not masks.needs_added_mask(type(zoo.build("llama", "regard")).__module__)
    assert not masks.needs_added_mask("transformers.models.gemma2.modeling_gemma2")
    assert not masks.needs_added_mask("somebody.modeling_model")
