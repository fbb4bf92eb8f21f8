"""A trace made again from its manifest: every name leads to an array that fits, or the one that does not is named."""

import numpy as np
import pytest

from regard.viewer.io import container, load, save

from .traces import ATTENTION, change, refused, simple, stored


@pytest.mark.parametrize("scale", [1.0, 3.7, 60000.0, 1e6])
def test_every_level_of_eight_bits_survives_being_read_and_written_again(path, scale):
    levels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    save(simple((scale * (levels / 255.0) ** 2).astype(np.float32), sums_to_one=False), path, exact=False)
    save(load(path), path, exact=False)
    np.testing.assert_array_equal(container.read(path)[0]["a/0/0"], levels)


@pytest.mark.parametrize(
    ("keys", "to", "said"),
    [
        (("extra",), 1, "does not follow the schema: extra must not be there"),
        ((*ATTENTION, "layer"), "0", "examples[0].attentions[0].layer must be of type integer, got '0'"),
        ((*ATTENTION, "mask"), "some", "examples[0].attentions[0].mask must be one of 'full', 'causal', 'given', got 'some'"),
        (("examples", 0, "axes", "source", "length"), 10**12, "axes.source.length must be at most 16777216, got 1000000000000"),
        (("examples", 0, "axes", "source", "kind"), "smell", "axes.source.kind must be one of 'text', 'audio', 'image', 'series', 'index', got 'smell'"),
        (("examples", 0, "axes", "source", "length"), 7, "attention 'cross': weights (heads, target, source) must be (1, 2, 7) to fit the axes, got (1, 2, 3)"),
        ((*ATTENTION, "weights"), "a/9", "attention 'cross', weights: the manifest names the array 'a/9', and the file has none of that name"),
        ((*ATTENTION, "weights"), "a/0/0/f32", "the array 'a/0/0/f32' must be uint8, got float32"),
        ((*ATTENTION, "weights"), None, "it has exact weights 'a/0/0/f32', and none in 8 bits; it needs both"),
        ((*ATTENTION, "exact"), "small", "its weights are (1, 2, 3) in 8 bits and (1,) exact; they must agree"),
        ((*ATTENTION, "exact"), "nan", "attention 'cross', head 0, query 0, key 0: a weight must be a finite number, got nan"),
        ((*ATTENTION, "heads"), 2, "weights of 2 heads are (heads, queries, keys), got (1, 2, 3)"),
        ((*ATTENTION, "mask"), "given", "its mask is said to be given, and allowed names no array"),
        ((*ATTENTION, "query"), "middle", "its query axis is 'middle', and the example has the axes target, source"),
        ((*ATTENTION, "scale"), 1e300, "scale must be at most 3e+38, got 1e+300"),
        ((*ATTENTION, "rows"), [5], "row 5 was recorded, and the axis 'target' has 2 places"),
        ((*ATTENTION, "statistics"), {"max": "lost"}, "statistic 'max': the manifest names the array 'lost'"),
        (("training",), [{"step": 1, "attentions": {"cross": "lost"}}], "training frame 0, attention 'cross': the manifest names the array 'lost'"),
    ],
)  # fmt: skip
def test_a_manifest_that_does_not_fit(path, keys, to, said):
    arrays = {"small": np.ones(1, np.float32), "nan": np.full((1, 2, 3), np.nan, np.float32)}
    stored(path, change(*keys, to=to), arrays)
    refused(path, said)


def test_a_causal_mask_is_bounded_since_the_file_does_not_bound_it(path):
    def wide(manifest):
        example = manifest["examples"][0]
        example["axes"] = {"source": {"kind": "index", "length": 1 << 20}, "target": {"kind": "index", "length": 1 << 20}}
        example["attentions"][0]["mask"] = "causal"

    stored(path, wide)
    refused(path, "attention 'cross': its causal mask has 1,048,576 x 1,048,576 cells")


def test_a_causal_mask_needs_its_axes_and_enough_keys(path):
    def lost(manifest):
        manifest["examples"][0]["attentions"][0] |= {"mask": "causal", "key": "middle"}

    stored(path, lost)
    refused(path, "its axes 'target' and 'middle' are not among target, source")

    def short(manifest):
        manifest["examples"][0]["attentions"][0]["mask"] = "causal"
        manifest["examples"][0]["axes"]["source"]["length"] = 1

    stored(path, short)
    refused(path, "a causal mask needs at least as many keys as queries, got 1 and 2")
