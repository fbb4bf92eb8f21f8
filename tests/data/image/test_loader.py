from itertools import chain
from time import perf_counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.image.augment import Compose
from regard.data.image.augment.affine import Affine
from regard.data.image.augment.crop import Crop
from regard.data.image.cache import ImageCache
from regard.data.image.loader import ImageLoader
from regard.data.image.types import ImageExample


def examples(*sizes: tuple[int, int]) -> list[ImageExample]:
    """A picture for each size, whose value and target say which one it is."""
    return [
        ImageExample(torch.full((1, height, width), place, dtype=torch.uint8), [place + 4, 2], f"x:{place}")
        for place, (height, width) in enumerate(sizes)
    ]


def loader(sizes, *settings, **more) -> ImageLoader:
    return ImageLoader(ImageCache(examples(*sizes), channels=1), *settings, **{"prefetch": 0, **more})


CHANGE = Compose((Affine(), Crop()))


def same(one, other) -> None:
    assert torch.equal(one.source.data, other.source.data)
    assert torch.equal(one.source.keep, other.source.keep)
    assert torch.equal(one.target.data, other.target.data)
    assert one.records == other.records


SIZES = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=30)


@settings(max_examples=40)
@given(SIZES, st.integers(1, 9000), st.integers(0, 2**40), st.integers(0, 2**40), st.booleans())
def test_an_epoch_has_every_example_once_and_keeps_the_budget(sizes, budget, seed, epoch, shuffle):
    made = loader(sizes, budget, seed, shuffle)
    batches = made.epoch(epoch)
    assert len(batches) == made.steps_per_epoch(epoch)
    assert sorted(chain.from_iterable(batches)) == list(range(len(sizes)))
    for batch in batches:
        height, width = np.array([sizes[index] for index in batch]).max(0)
        assert len(batch) == 1 or len(batch) * height * width <= budget


@settings(max_examples=15)
@given(SIZES, st.integers(1, 9000), st.lists(st.integers(0, 200), min_size=1, max_size=6))
def test_a_step_has_the_same_batch_in_whatever_order_it_is_asked_for(sizes, budget, steps):
    once = loader(sizes, budget, 3, change=CHANGE)
    for step in steps:
        same(once.batch(step), loader(sizes, budget, 3, change=CHANGE).batch(step))


@pytest.mark.parametrize("prefetch", [1, 3])
def test_a_step_has_the_same_batch_whether_it_was_made_ahead_or_not(prefetch):
    sizes = np.random.default_rng(0).integers(5, 30, (40, 2)).tolist()
    plain, eager = (loader(sizes, 3000, 3, change=CHANGE, prefetch=width) for width in (0, prefetch))
    for step in (0, 1, 2, 3, 9, 10, 2, 3):
        same(plain.batch(step), eager.batch(step))
    eager.close()


def test_steps_count_on_through_the_epochs():
    made = loader([(3, 3)] * 10, 27, seed=1)
    assert made.steps_per_epoch() == 4
    for step in range(12):
        assert list(made.batch(step).records) == [f"x:{index}" for index in made.epoch(step // 4)[step % 4]]
    assert made.epoch(0) != made.epoch(1)
    assert made.epoch(0) != loader([(3, 3)] * 10, 27, seed=2).epoch(0)


def test_a_step_far_ahead_is_found_at_once():
    made = loader([(9, 9)] * 50, 900, change=CHANGE)
    start = perf_counter()
    assert len(made.batch(10**15).records) in (6, 11)
    assert perf_counter() - start < 5


def test_a_batch_has_what_its_examples_have():
    boxes = [torch.rand(2, 4), torch.rand(0, 4)]
    made = [
        ImageExample(torch.rand(3, 4, 6), [5, 2], "a", [1, 2], boxes[0], [7, 8, 2]),
        ImageExample(torch.rand(3, 4, 5), [6, 6, 2], "b", [], boxes[1], [9, 2]),
    ]
    batch = ImageLoader(ImageCache(made), shuffle=False, multiple=4, prefetch=0).batch(0)
    a, b = batch.records.index("a"), batch.records.index("b")
    assert batch.source.data.shape == (2, 3, 4, 8)
    assert batch.source.keep.sum((1, 2))[[a, b]].tolist() == [24, 20]
    assert batch.target.data[[a, b]].tolist() == [[5, 2, 0], [6, 6, 2]]
    assert batch.labels.keep[[a, b]].tolist() == [[True, True], [False, False]]
    assert batch.labels.data[a].tolist() == [1, 2]
    assert torch.equal(batch.boxes[a], boxes[0])
    assert batch.boxes[b].abs().sum() == 0
    assert batch.question.data[[a, b]].tolist() == [[7, 8, 2], [9, 2, 0]]
    assert batch.frames is None


def test_labels_go_with_the_boxes_that_leave_the_picture():
    boxes = torch.tensor([[0.05, 0.05, 0.1, 0.1], [0.5, 0.5, 0.4, 0.4], [0.95, 0.95, 0.1, 0.1]])
    made = ImageLoader(
        ImageCache([ImageExample(torch.rand(1, 40, 40), labels=[7, 8, 9], boxes=boxes)]), change=Crop(0.5), prefetch=0
    )
    seen = set()
    for step in range(20):
        batch = made.batch(step)
        labels = batch.labels.data[0].tolist()
        assert len(labels) == batch.boxes.shape[1]
        assert 8 in labels
        seen |= {tuple(labels)}
    assert (8,) in seen
    assert len(seen) > 2


def test_clips_of_different_lengths_are_filled_up_with_empty_pictures():
    made = [ImageExample(torch.rand(frames, 1, 2, 2), record=frames) for frames in (3, 1)]
    [part] = ImageLoader(ImageCache(made, channels=1), 1000).in_order()
    batch = part.batch
    long, short = batch.records.index(3), batch.records.index(1)
    assert batch.frames[[long, short]].tolist() == [[True] * 3, [True, False, False]]
    keep = batch.source.keep.view(2, 3, 4).all(-1)
    assert torch.equal(keep, batch.frames)
    assert batch.source.data.view(2, 3, 4)[short, 1:].abs().sum() == 0
    assert batch.source.data.view(2, 3, 4)[long].min(-1).values.gt(0).all()


def test_frames_count_for_the_budget():
    made = [ImageExample(torch.rand(4, 1, 2, 2)) for _ in range(4)]
    assert ImageLoader(ImageCache(made), 32).steps_per_epoch() == 2


@pytest.mark.parametrize("prefetch", [0, 2])
def test_evaluation_goes_by_size_unchanged_and_can_be_put_back(prefetch):
    chance = np.random.default_rng(0)
    sizes = chance.integers(1, 30, (60, 2)).tolist()
    made = loader(sizes, 2000, change=Crop(0.1), prefetch=prefetch)
    answers = {}
    for indices, batch in made.in_order():
        assert len(indices) == 1 or batch.source.keep.numel() <= 2000
        for row, index in enumerate(indices):
            assert batch.source.keep[row].sum() == sizes[index][0] * sizes[index][1]
            assert batch.source.data[row].max() == pytest.approx(index / 255)
        answers |= dict(zip(indices, batch.records, strict=True))
    assert [answers[index] for index in range(60)] == [f"x:{index}" for index in range(60)]


def test_a_loader_that_nobody_holds_takes_its_threads_along():
    import gc
    import threading

    before = set(threading.enumerate())
    gc.disable()  # a collection would hide that it holds itself
    try:
        made = loader([(9, 9)] * 20, 81, prefetch=2)
        made.batch(0)
        begun = set(threading.enumerate()) - before
        assert begun
        del made
        for thread in begun:
            thread.join(10)
        assert not any(thread.is_alive() for thread in begun)
    finally:
        gc.enable()


def test_an_evaluation_that_is_left_early_leaves_no_thread_behind():
    import threading

    before = threading.active_count()
    parts = loader([(9, 9)] * 20, 81, prefetch=3).in_order()
    next(parts)
    parts.close()
    assert threading.active_count() == before


def test_batches_of_pictures_of_like_sizes_have_one_shape_in_every_epoch():
    chance = np.random.default_rng(0)
    sizes = [(int(high), int(wide)) for high, wide in chance.integers((33, 65), (49, 97), (90, 2))]
    made = loader(sizes, 10 * 48 * 96, prefetch=0)
    shapes = {tuple(made.batch(step).source.data.shape[2:]) for step in range(3 * made.steps_per_epoch())}
    assert shapes == {(max(high for high, _ in sizes), max(wide for _, wide in sizes))}


def test_little_is_padding_among_pictures_of_all_sizes():
    chance = np.random.default_rng(0)
    heights = np.exp(chance.normal(3.5, 0.4, 4000)).astype(int).clip(8, 200)
    widths = (heights * np.exp(chance.normal(1.0, 0.6, 4000))).astype(int).clip(8, 800)
    cache = ImageCache([])
    cache.examples, cache.sizes = (
        [ImageExample("unread")] * 4000,
        [(0, int(h), int(w)) for h, w in zip(heights, widths, strict=True)],
    )
    made = ImageLoader(cache, 400_000)
    assert made.padding() < 0.36
    together = [{index: place for place, batch in enumerate(made.epoch(epoch)) for index in batch} for epoch in (0, 1)]
    pairs = [(batch[0], batch[-1]) for batch in made.epoch(0) if len(batch) > 1]
    assert sum(together[1][first] == together[1][last] for first, last in pairs) < len(pairs) / 2


def test_a_change_differs_from_step_to_step_and_from_picture_to_picture():
    one = torch.rand(1, 16, 16)
    made = ImageLoader(ImageCache([ImageExample(one), ImageExample(one)]), change=Affine(), prefetch=0)
    first, second = made.batch(0).source.data, made.batch(1).source.data
    assert not torch.equal(first, second)
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: loader([]), "at least one example, got none"),
        (lambda: loader([(1, 1)], 0), "batch_pixels and a multiple of at least 1 and a seed of at least 0, got 0, 1 and 0"),
        (lambda: loader([(1, 1)], 9, -1), "got 9, 1 and -1"),
        (lambda: loader([(1, 1)], multiple=0), "got 262144, 0 and 0"),
        (
            lambda: ImageLoader(ImageCache([ImageExample(torch.rand(1, 2, 2), [2]), ImageExample(torch.rand(1, 2, 2))])),
            "target for every example or for none, got 1 for 2",
        ),
        (
            lambda: ImageLoader(ImageCache([ImageExample(torch.rand(1, 2, 2), labels=[1], boxes=torch.rand(2, 4))])),
            "boxes need a label each, got 2 and 1 in example 0",
        ),
        (
            lambda: ImageLoader(ImageCache([ImageExample(torch.rand(1, 2, 2)), ImageExample(torch.rand(2, 1, 2, 2))])),
            "pictures or clips, got 1 and 1",
        ),
        (lambda: loader([(1, 1)]).batch(-1), "steps are counted from 0, got -1"),
        (lambda: loader([(1, 1)]).epoch(-1), "epochs are counted from 0, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_pictures_of_one_size_change_in_one_go_by_seed_and_step():
    examples = [ImageExample(torch.rand(1, 8, 8), labels=[number]) for number in range(6)]
    loader, again = (ImageLoader(ImageCache(examples, channels=1), 1 << 10, change=Affine()) for _ in range(2))
    batch = loader.batch(3)
    assert torch.equal(batch.source.data, again.batch(3).source.data)
    assert not torch.equal(batch.source.data, loader.batch(4).source.data)
    plain = torch.stack([examples[number].picture for number in batch.labels.data[:, 0].tolist()])
    assert not torch.allclose(batch.source.data, plain, atol=0.01)
    loader.close()
    again.close()
