"""What people gave with an output: the source in the language of the source, what was written in that of the target."""

from regard.viewer.huggingface.reading import Reading


def reading(**given):
    plain = {"tokenizer": None, "source": None, "target": None, "written": None}
    return Reading(**(plain | {"languages": ("en", "zh"), "candidates": 8, "sums_to_one": True} | given))


def test_the_axis_of_the_source_is_of_its_language_and_without_padding():
    given = {"input_ids": [[5, 6, 7], [8, 9, 1]], "attention_mask": [[1, 1, 1], [1, 1, 0]]}
    axis, kept = reading(source=given).source_axis((1, 2), 3)
    assert (axis.labels, axis.lang, kept) == (["8", "9"], "en", [0, 1])


def test_without_a_source_its_places_are_numbered():
    axis, kept = reading().source_axis((0, 1), 3)
    assert (axis.kind, axis.labels, kept) == ("index", ["0", "1", "2"], [0, 1, 2])


def test_what_was_written_is_of_the_language_of_the_target():
    axis = reading().target_axis([4, 2])
    assert (axis.labels, axis.lang) == (["4", "2"], "zh")
