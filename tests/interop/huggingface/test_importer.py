import json
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from torch.testing import assert_close

import regard
from regard.data.batch import Padded
from regard.data.special_tokens import BOS
from regard.errors import RefusedError
from regard.interop.huggingface.importer import files
from regard.interop.output import write_directory

from .tiny import END, FIRST, NAMES, PAD, VOCABULARY, padded, saved, sentences, taught, tiny


def taken(model, folder):
    """A model's folder as a run, opened."""
    write_directory(folder / "run", files(saved(model, folder / "theirs")))
    return regard.load(folder / "run", "cpu")


def logits(trained, ids, mask, target):
    """Ours, in the order of their ids; the first of the target is where a decoder begins."""
    numbers = trained.codec.target.numbers
    source = torch.tensor([[numbers[each] for each in row] for row in ids.tolist()])
    before = torch.tensor([[BOS, *(numbers[each] for each in row[1:])] for row in target.tolist()])
    with torch.no_grad():
        found = trained.model(Padded(source, mask.bool()), before).output
    return found[..., torch.tensor([numbers[each] for each in range(len(numbers))])]


def compared(kind, folder, *shapes, **options):
    """Their logits and ours, for (how many sources, their longest) in `shapes`."""
    model = tiny(kind, **options)
    trained = taken(model, folder)
    for count, length in shapes:
        ids, mask = padded(sentences(count, length, model.config.vocab_size))
        begin = torch.full((count, 1), model.config.decoder_start_token_id)
        target = torch.cat((begin, torch.randint(4, model.config.vocab_size, (count, length))), dim=1)
        with torch.no_grad():
            theirs = model(input_ids=ids, attention_mask=mask, decoder_input_ids=target).logits
        assert_close(logits(trained, ids, mask, target), theirs, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", NAMES)
def test_logits_are_theirs_with_padding_too(kind, tmp_path):
    compared(kind, tmp_path, (1, 3), (4, 7), (4, 12))


@pytest.mark.parametrize("kind", ["marian", "pegasus", "bart"])
def test_a_decoder_may_begin_with_the_padding_and_have_other_layers_and_activations(kind, tmp_path):
    options = {"decoder_start_token_id": PAD, "decoder_layers": 1, "activation_function": "swish", "scale_embedding": False}
    compared(kind, tmp_path, (3, 6), **options)


@pytest.mark.soak
@pytest.mark.parametrize("kind", FIRST)
@settings(max_examples=20)
@given(data=st.data())
def test_any_shape_of_model_has_their_logits(kind, data, tmp_path_factory):
    heads = data.draw(st.sampled_from([1, 2, 4]))
    inner = data.draw(st.integers(4, 40))
    options = {
        "d_model": 4 * heads * data.draw(st.integers(1, 4)),
        "vocab_size": data.draw(st.integers(8, 90)),
        "encoder_layers": data.draw(st.integers(1, 3)),
        "decoder_layers": data.draw(st.integers(1, 3)),
        **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), heads),
        **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), inner),
        "activation_function": data.draw(st.sampled_from(["relu", "gelu", "swish"])),
        "scale_embedding": data.draw(st.booleans()),
    }
    shape = data.draw(st.sampled_from([1, 4])), data.draw(st.integers(2, 20))
    compared(kind, tmp_path_factory.mktemp("model"), shape, **options)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["t5", "t5_gated", "mt5"])
@settings(max_examples=20)
@given(data=st.data())
def test_any_shape_of_t5_has_their_logits(kind, data, tmp_path_factory):
    options = {name: data.draw(st.integers(1, 3)) for name in ("num_layers", "num_decoder_layers", "num_heads")}
    options |= {"d_kv": data.draw(st.integers(2, 9)), "d_ff": data.draw(st.integers(4, 40))}
    options |= {"vocab_size": data.draw(st.integers(8, 90))}
    options |= {"feed_forward_proj": data.draw(st.sampled_from(["relu", "gelu", "gated-gelu", "gated-silu"]))}
    shape = data.draw(st.sampled_from([1, 4])), data.draw(st.integers(2, 20))
    compared(kind, tmp_path_factory.mktemp("model"), shape, **options)


SOAKED = pytest.param("mt5", marks=pytest.mark.soak)  # it searches as the second T5 does


@pytest.mark.parametrize("kind", [*(kind for kind in NAMES if kind != "mt5"), SOAKED])
def test_greedy_and_beam_search_write_what_generate_writes(kind, tmp_path):
    begin = {"decoder_start_token_id": PAD} if kind in ("marian", "pegasus") else {}
    model = taught(kind, 150 if kind == "marian" else 60, scale_embedding=False, **begin)
    model.generation_config.max_length = 10
    trained = taken(model, tmp_path)
    rows = [[*torch.randint(4, VOCABULARY, (5,)).tolist(), END] for _ in range(60)]
    texts = [" ".join(map(str, row[:-1])) for row in rows]
    options = {"do_sample": False, "early_stopping": False, "suppress_tokens": [PAD], "max_new_tokens": trained.longest(6)}
    for beam in (1, 4):
        theirs = model.generate(torch.tensor(rows), num_beams=beam, **options)[:, 1:].tolist()
        ours = [answer.text for answer in trained.predict(texts, beam=beam)]
        ended = [(mine, row[: row.index(END)]) for mine, row in zip(ours, theirs, strict=True) if END in row]
        assert len(ended) >= 50  # ours ranks what was cut off behind what has ended, and theirs does not
        assert [mine for mine, _ in ended] == [" ".join(map(str, row)) for _, row in ended]
        assert len(set(ours)) > 8


def test_the_first_token_is_forced_where_theirs_is(tmp_path):
    model = tiny("bart", forced_bos_token_id=7)
    model.generation_config.forced_bos_token_id = 7
    trained = taken(model, tmp_path)
    rows = [[*torch.randint(4, VOCABULARY, (5,)).tolist(), END] for _ in range(10)]
    theirs = model.generate(torch.tensor(rows), num_beams=3, suppress_tokens=[PAD], max_new_tokens=12, do_sample=False)
    for row, answer in zip(
        theirs.tolist(), trained.predict([" ".join(map(str, each[:-1])) for each in rows], beam=3), strict=True
    ):
        assert answer.text.split()[0] == "7"
        assert answer.text.split()[:3] == [str(each) for each in row[1:4] if each not in (PAD, END)]


def worded(template, around):
    """A tokenizer of as many words as the models have, two of them the names of languages."""
    words = ["<s>", "<pad>", "</s>", "<unk>", "eng_Latn", "deu_Latn", *(f"w{number}" for number in range(VOCABULARY - 6))]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    tokenizer.add_special_tokens(words[:6])
    pairs = [(word, words.index(word)) for word in around]
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=pairs)
    return tokenizer


def test_a_model_of_many_languages_is_told_which_one_to_write_by_its_name(tmp_path):
    model, tokenizer = tiny("m2m_100"), worded("eng_Latn $A </s>", ["eng_Latn", "</s>"])
    folder = saved(model, tmp_path / "theirs")
    tokenizer.save(str(folder / "tokenizer.json"))
    write_directory(tmp_path / "run", files(folder, first="deu_Latn"))
    trained = regard.load(tmp_path / "run", "cpu")
    ids = tokenizer.encode("w3 w9 w40").ids
    assert ids[0] == 4
    options = {"do_sample": False, "suppress_tokens": [PAD], "max_new_tokens": trained.longest(len(ids))}
    theirs = model.generate(torch.tensor([ids]), forced_bos_token_id=5, **options)[0].tolist()
    [answer] = trained.predict(["w3 w9 w40"])
    assert theirs[1] == 5
    assert answer.text == tokenizer.decode(theirs, skip_special_tokens=True)
    with pytest.raises(RefusedError, match=r"needs to be a token of its tokenizer.json, .* got 'Klingon'"):
        files(folder, first="Klingon")


@pytest.mark.parametrize("forced", [53, PAD, END, [5]], ids=str)
def test_a_forced_token_that_no_answer_can_begin_with_is_refused(forced, tmp_path):
    folder = saved(tiny("bart"), tmp_path)
    (folder / "generation_config.json").write_text(json.dumps({"forced_bos_token_id": forced}))
    told = rf"from 0 to 52, and not padding, end or unknown, got {re.escape(str(forced))}"
    with pytest.raises(RefusedError, match=told):
        files(folder)


def test_texts_go_in_and_come_out_by_its_tokenizer(tmp_path):
    tokenizer = worded("<s> $A </s>", ["<s>", "</s>"])
    model = tiny("bart")
    folder = saved(model, tmp_path / "theirs")
    tokenizer.save(str(folder / "tokenizer.json"))
    write_directory(tmp_path / "run", files(folder))
    trained = regard.load(tmp_path / "run", "cpu")
    text = "w3 w9 strange w40"
    ids = tokenizer.encode(text).ids
    options = {"do_sample": False, "suppress_tokens": [PAD], "max_new_tokens": trained.longest(len(ids))}
    theirs = model.generate(torch.tensor([ids]), **options)[0].tolist()
    [answer] = trained.predict([text], align=True)
    assert answer.text == tokenizer.decode(theirs, skip_special_tokens=True)
    assert answer.source == ["<s>", "w3", "w9", "strange", "w40", "<eos>"]
    assert answer.weights.shape == (len(answer.target), 6)


def test_how_it_searches_is_taken_over(tmp_path):
    model = tiny("bart")
    folder = saved(model, tmp_path / "theirs")
    said = {"num_beams": 4, "length_penalty": 0.5, "no_repeat_ngram_size": 3, "max_length": 20, "temperature": 1.0}
    (folder / "generation_config.json").write_text(json.dumps(said))
    write_directory(tmp_path / "run", files(folder, "pronounce"))
    trained = regard.load(tmp_path / "run", "cpu")
    search = trained.config.search
    assert (search.beam, search.length_penalty, search.block_ngrams, search.max_length) == (4, 0.5, 3, 19)
    assert trained.longest(1) == 19  # a short source is no reason to stop for generate
    assert trained.name == "pronounce"


def test_a_task_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(LookupError, match="no task is called 'translte'; did you mean 'translate'"):
        files(saved(tiny("bart"), tmp_path), "translte")


def test_a_source_with_something_behind_its_end_is_refused(tmp_path):
    words = {word: number for number, word in enumerate(["en", "<pad>", "</s>", "<unk>", "a"])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s> en", special_tokens=[("</s>", 2), ("en", 0)])
    folder = saved(tiny("mbart"), tmp_path)
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(RefusedError, match=r"puts tokens behind the end of a source, got ids \[4, 2, 0\] for 'a' with 2"):
        files(folder)
