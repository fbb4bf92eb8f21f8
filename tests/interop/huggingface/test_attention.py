"""The attention function of transformers: equal to `sdpa` and `eager` with every mask, cache and option that models have."""

import pytest
import torch
import transformers
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

import regard.huggingface
from regard.errors import RefusedError
from regard.interop.huggingface import attention, masks

from . import zoo


def tokens(batch=2, length=9, seed=0):
    return torch.randint(3, zoo.VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def logits(model, ids, **options):
    return model(ids, **options).logits


def pair(model_type, other="eager", **options):
    """A model through this attention function, and the same model through another."""
    return zoo.build(model_type, "regard", **options), zoo.build(model_type, other, **options)


def assert_equal_logits(models, ids, **options):
    ours, theirs = (logits(model, ids, **options) for model in models)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_importing_the_public_module_registers_both_functions():
    assert regard.huggingface.NAME == "regard"
    assert transformers.AttentionInterface()["regard"] is attention.compute_attention
    assert ALL_MASK_ATTENTION_FUNCTIONS["regard"] is masks.build_mask
    assert zoo.implementation_of(zoo.build("llama", "regard")) == {"regard"}


def test_no_token_sees_a_later_one_and_padding_is_not_seen():
    model, ids = zoo.build("llama", "regard"), tokens()
    keep = torch.ones_like(ids)
    keep[0, :3] = 0
    later, padded = ids.clone(), ids.clone()
    later[:, 6:] = 5
    padded[0, :3] = 7
    before = logits(model, ids, attention_mask=keep)
    torch.testing.assert_close(logits(model, later, attention_mask=keep)[:, :6], before[:, :6])
    torch.testing.assert_close(logits(model, padded, attention_mask=keep)[0, 3:], before[0, 3:])


def test_without_the_mask_function_masks_would_be_dropped_in_silence(monkeypatch):
    models, ids = pair("llama"), tokens()
    keep = torch.ones_like(ids)
    keep[0, :3] = 0
    mapping = dict(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping)
    del mapping["regard"]
    monkeypatch.setattr(type(ALL_MASK_ATTENTION_FUNCTIONS), "_global_mapping", mapping)
    ours, theirs = (logits(model, ids, attention_mask=keep)[0, 3:] for model in models)
    assert (ours - theirs).abs().max() > 1e-2


@pytest.mark.parametrize(
    "model_type",
    ["mistral", "gemma2", "gpt_oss", "llama4_text", "t5", "bart", "bert", "deepseek_v4", "pegasus_x"],
    ids=lambda name: {
        "mistral": "window and groups",
        "gemma2": "soft cap, window and scale",
        "gpt_oss": "sinks",
        "llama4_text": "chunks",
        "t5": "position bias",
        "bart": "cross-attention",
        "bert": "both directions",
        "deepseek_v4": "a mask that is added",
        "pegasus_x": "no word on what is causal",
    }[name],
)
@pytest.mark.parametrize("padded", [False, True])
def test_logits_equal_those_of_eager(model_type, padded):
    models = pair(model_type)
    given = zoo.inputs(models[0], length=14, padded=padded)
    with torch.no_grad():
        ours, theirs = (model(**given).logits for model in models)
    keep = given["attention_mask"][..., None] if ours.shape[1] == 14 else 1
    torch.testing.assert_close(ours * keep, theirs * keep, atol=1e-5, rtol=1e-5)


def test_packed_documents_do_not_see_each_other():
    models, ids = pair("llama"), tokens(1, 10)
    packed = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4, 5]])
    assert_equal_logits(models, ids, position_ids=packed, use_cache=False)
    apart = logits(models[0], ids[:, 4:])
    torch.testing.assert_close(
        logits(models[0], ids, position_ids=packed, use_cache=False)[:, 4:], apart, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("cache", ["dynamic", "static", None])
@pytest.mark.parametrize("beams", [1, 3])
def test_generate_answers_the_same_with_every_cache(cache, beams):
    options = {"max_new_tokens": 6, "do_sample": False, "num_beams": beams, "cache_implementation": cache}
    options |= {"use_cache": cache is not None, "disable_compile": True}
    for model_type in ("mistral", "gpt_oss"):  # sliding layers
        models = pair(model_type)
        given = zoo.inputs(models[0], length=9)
        ours, theirs = (model.generate(**given, **options) for model in models)
        assert torch.equal(ours, theirs)


def test_gradients_equal_those_of_eager():
    for model_type in ("llama", "gemma2", "gpt_oss"):
        models, gradients = pair(model_type), []
        given = zoo.inputs(models[0], length=9, padded=False)
        for model in models:
            model.train()
            model(**given, labels=given["input_ids"]).loss.backward()
            gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
        for name, gradient in gradients[1].items():
            if gradient is not None:
                torch.testing.assert_close(gradients[0][name], gradient, atol=1e-5, rtol=1e-4)


def test_dropout_acts_in_training_alone_and_draws_what_sdpa_draws():
    models, ids = pair("bert", "sdpa"), tokens()
    for model in models:
        for module in model.modules():
            if hasattr(module, "dropout") and type(module).__name__ == "BertSelfAttention":
                module.dropout.p = 0.5
        model.train()
    answers = []
    for model in models:
        torch.manual_seed(0)
        answers.append(logits(model, ids))
    torch.testing.assert_close(*answers)
    assert not torch.equal(answers[0], logits(models[0].eval(), ids))


def test_dropout_of_soft_capped_scores_takes_weights_away():
    product = attention.Product(*torch.randn(3, 1, 1, 8, 4), scale=0.5, softcap=5.0)
    torch.manual_seed(0)
    dropped = attention.run(attention.Product(product.query, product.key, product.value, 0.5, softcap=5.0, dropout=0.5))
    assert not torch.allclose(dropped, attention.run(product))


def test_half_precision_is_no_further_from_float32_than_sdpa():
    models, ids = pair("llama", "sdpa"), tokens(2, 12)
    exact = logits(models[1], ids)
    ours, theirs = (logits(model.to(torch.bfloat16), ids).float() for model in models)
    assert (ours - exact).abs().mean() <= 1.5 * (theirs - exact).abs().mean()


def test_sinks_keep_their_precision_in_half_precision():
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 4, 16, 8)
    sinks = torch.tensor([3.14159, -1.7, 0.333, 5.8])
    product = attention.Product(query, key, value, 0.35, causal=True, sinks=sinks)
    exact = product.combine(product.all_weights())
    torch.testing.assert_close(attention.run(product), exact, atol=1e-6, rtol=1e-5)
    half = attention.Product(*(part.bfloat16() for part in (query, key, value)), 0.35, causal=True, sinks=sinks.bfloat16())
    same = half.combine(half.all_weights())
    assert (attention.run(half).float() - same.float()).abs().max() < 0.03


def test_output_attentions_gets_the_weights_of_eager():
    query, key, value = torch.randn(3, 1, 4, 6, 8)
    module = torch.nn.Module()
    context, weights = attention.compute_attention(module, query, key, value, None, is_causal=True, output_attentions=True)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(context.transpose(1, 2), expected)
    torch.testing.assert_close(weights @ value, expected)


@pytest.mark.parametrize("name", ["indices", "block_indices"])
def test_keys_of_an_indexer_are_refused(name):
    query = torch.randn(1, 2, 3, 4)
    with pytest.raises(RefusedError, match=rf"no sparse attention .* Module hands over {name}; load .*\"sdpa\" instead"):
        attention.compute_attention(torch.nn.Module(), query, query, query, None, **{name: torch.zeros(1)})


def test_a_paged_cache_and_a_mask_that_is_no_tensor_are_refused():
    query, module = torch.randn(1, 2, 3, 4), torch.nn.Module()
    with pytest.raises(RefusedError, match=r'no paged cache, and Module is run with one .*"sdpa"'):
        attention.compute_attention(module, query, query, query, None, cache=object())
    with pytest.raises(RefusedError, match=r'needs a mask that is a tensor, and Module hands over a tuple; .*"sdpa"'):
        attention.compute_attention(module, query, query, query, (1, 2))


def test_a_sparse_attention_is_refused_before_it_answers():
    model = zoo.build("deepseek_v32", "regard")
    with pytest.raises(RefusedError, match="DeepseekV32Attention hands over indices"):
        model(tokens())


def test_a_transformers_without_mask_functions_is_refused(monkeypatch):
    monkeypatch.delattr("transformers.masking_utils.AttentionMaskInterface")
    with pytest.raises(
        RefusedError, match=r"needs a transformers that has AttentionMaskInterface, 4\.53 or later; upgrade it"
    ):
        attention.register()


@pytest.mark.unhooked
def test_a_compiled_model_is_one_graph_and_answers_the_same():
    ids = tokens(2, 9)
    for model_type in ("llama", "gpt_oss"):
        model = zoo.build(model_type, "regard")
        expected = logits(model, ids)
        compiled = torch.compile(model, backend="eager", fullgraph=model_type == "llama")
        torch.testing.assert_close(logits(compiled, ids), expected, atol=1e-5, rtol=1e-5)
