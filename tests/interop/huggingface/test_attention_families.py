"""Families of transformers through this attention function: logits, cached steps and answers of `sdpa` or `eager`."""

import os

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError

import regard.huggingface
from regard.errors import RefusedError

from . import zoo

assert regard.huggingface.NAME == "regard"
SELECTION = ("llama", "qwen3_moe", "gpt2", "cohere2", "bart", "t5", "vit", "wav2vec2")
LEAST = 60
"""Families that have to pass; more do."""
UNBUILT: tuple[type[Exception], ...] = (LookupError, AttributeError, TypeError, ImportError, StopIteration, RuntimeError)
UNBUILT += (ValueError, AssertionError, StrictDataclassError)
"""Errors of transformers where a config with small sizes alone makes no model, or its inputs are more than one tensor."""
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
"""The name of this run, which all processes of pytest share."""


def check_logits(family):
    """Raise where logits of a padded batch differ by more than 1e-5 of the largest; returns both models."""
    reasons = []
    for model_type in zoo.model_types(family):
        try:
            theirs = zoo.reference(model_type)
            given = zoo.inputs(theirs)
            expected = run(theirs, given)
        except UNBUILT as error:
            reasons.append(f"{model_type}: {type(error).__name__}: {' '.join(str(error).split())[:90]}")
            continue
        try:
            ours = zoo.build(model_type, "regard")
        except KeyError as missing:
            if missing.args != ("regard",):
                raise
            pytest.skip(f"{family} chooses its attention from a table of its own and not by the interface")
        assert zoo.implementation_of(ours) == {"regard"}
        difference = (run(ours, given) - expected).abs()
        keep = given.get("attention_mask")
        if keep is not None and difference.shape[:2] == keep.shape:
            difference = difference * keep.view(*keep.shape, *[1] * (difference.ndim - 2))
        assert difference.max() <= 1e-5 * max(1.0, float(expected.abs().max())), model_type
        return ours, theirs
    pytest.skip(f"{family} is not built from its sizes alone: {'; '.join(reasons) or 'no model type'}")


@torch.no_grad()
def run(model, given):
    torch.manual_seed(0)  # masked autoencoders choose patches at random
    return zoo.logits_of(model(**given))


def check_steps(ours, theirs):
    """Raise where logits of two steps with a cache differ."""
    given = zoo.inputs(theirs, length=11)
    if theirs.config.is_encoder_decoder or not theirs.can_generate() or set(given) != {"input_ids", "attention_mask"}:
        return
    steps = []
    for model in (ours, theirs):
        with torch.no_grad():
            begun = model(given["input_ids"][:, :9], attention_mask=given["attention_mask"][:, :9], use_cache=True)
            if getattr(begun, "past_key_values", None) is None:
                return
            steps.append(
                model(**given | {"input_ids": given["input_ids"][:, 9:]}, past_key_values=begun.past_key_values).logits
            )
    torch.testing.assert_close(*steps, atol=1e-5 * max(1.0, float(steps[1].abs().max())), rtol=0)


def check_answers(ours, theirs, count=20):
    """Raise where one of the answers differs, greedily and with beams."""
    if not theirs.can_generate() or theirs.main_input_name != "input_ids":
        return
    given = {name: tensor for name, tensor in zoo.inputs(theirs, batch=count).items() if name != "decoder_input_ids"}
    for beams in (1, 2):
        options = {"max_new_tokens": 4, "num_beams": beams, "do_sample": False, "disable_compile": True}
        options |= {"decoder_start_token_id": 2} if theirs.config.is_encoder_decoder else {}
        torch.manual_seed(0)
        try:
            expected = theirs.generate(**given, **options)
        except ValueError as refusal:  # a family that does not search with beams
            assert "is not supported for" in str(refusal)  # noqa: PT017
            continue
        torch.manual_seed(0)
        assert torch.equal(ours.generate(**given, **options), expected)


@pytest.fixture
def passed(tmp_path_factory):
    """A folder with one file for each family that has passed."""
    folder = tmp_path_factory.getbasetemp().parent / f"families-{RUN}"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("family", SELECTION)
def test_a_family_answers_as_without_this_attention_function(family):
    models = check_logits(family)
    check_steps(*models)
    check_answers(*models, count=4)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", zoo.families())
def test_every_family_answers_as_without_this_attention_function(family, passed):
    try:
        models = check_logits(family)
    except RefusedError as refusal:
        assert "sdpa" in str(refusal)  # noqa: PT017
        pytest.skip(f"{family} is refused: {refusal}")
    check_steps(*models)
    check_answers(*models)
    (passed / family).touch()


@pytest.mark.soak
def test_many_families_pass(passed):
    assert len(list(passed.iterdir())) >= LEAST
