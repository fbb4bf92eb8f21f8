"""A trace from what a Hugging Face transformers model returned: `Trace.from_huggingface`.

    model = AutoModelForSeq2SeqLM.from_pretrained(name, attn_implementation="eager")
    inputs = tokenizer("Tom chases Jerry", return_tensors="pt")
    output = model.generate(**inputs, num_beams=4, return_dict_in_generate=True, output_attentions=True, output_scores=True)
    Trace.from_huggingface(output, tokenizer, source=inputs)

A decoder's queries are called after what they write, "target", its keys after what it had read by then, "written": the same
tokens one place on. A model of one stack has one axis, "tokens". transformers is never imported here.
"""

from typing import Any

from regard.viewer.huggingface.forward import forward
from regard.viewer.huggingface.generate import generated
from regard.viewer.huggingface.reading import Reading
from regard.viewer.io.check import check
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Trace


def from_huggingface(
    output: Any,
    tokenizer: Any = None,
    *,
    source: Any = None,
    target: Any = None,
    written: Any = None,
    languages: tuple[str | None, str | None] = (None, None),
    candidates: int = 8,
    sums_to_one: bool = True,
    name: str = "",
) -> Trace:
    """Every example of a forward pass, or every answer of `generate`.

    `output` may also be the attentions alone, a tuple of layers, and the output of a model of two towers such as CLIP.
    `source` is what the model was given: what the tokenizer or the processor returned, with its mask, or numbers, tokens, an
    axis such as Image or Audio. Of a forward pass through a decoder also `target`, the tokens that its places should write
    (labels), or `written`, the tokens that it reads (decoder_input_ids); of an answer both are known. `languages` are BCP 47
    tags of source and target. Without a tokenizer tokens are shown as numbers.
    """
    reading = Reading(tokenizer, source, target, written, languages, candidates, sums_to_one)
    answered = getattr(output, "sequences", None) is not None
    examples, notes = generated(output, reading) if answered else forward(output, reading)
    trace = Trace(name or type(output).__name__, tuple(examples), notes=tuple(notes))
    try:
        check(trace)
    except TraceError as error:
        if "must sum to 1" not in str(error):
            raise
        raise TraceError(f"{error}. A model in training mode drops weights at random: call model.eval() first") from None
    return trace
