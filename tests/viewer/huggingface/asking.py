"""How models are asked, and where a model looks that is given the answer: what a trace of the answer must agree with."""

import torch

ASKED = {"return_dict_in_generate": True, "output_attentions": True, "output_scores": True}


def inputs(tokenizer, *texts):
    """Texts as a tokenizer hands them to a model."""
    return tokenizer(list(texts), return_tensors="pt", padding=True)


def forced(model, source, sequence):
    """Attentions of a pass in which the decoder is given the answer: decoder self, cross, encoder."""
    with torch.no_grad():
        output = model(**source, decoder_input_ids=sequence[None], output_attentions=True)
    return {
        "decoder.{}.self": output.decoder_attentions,
        "decoder.{}.cross": output.cross_attentions,
        "encoder.{}.self": output.encoder_attentions,
    }


def row(source, number):
    """One text of a batch, without its padding."""
    keep = source["attention_mask"][number].bool()
    return {"input_ids": source["input_ids"][number][keep][None]}
