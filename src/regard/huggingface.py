"""Regard inside models of Hugging Face transformers: importing this module registers `attn_implementation="regard"`.

import regard.huggingface

model = AutoModelForCausalLM.from_pretrained(path, attn_implementation="regard")
with regard.record(model, rows=[-1], statistics=("entropy", "argmax", "received")) as rec:
    model.generate(**inputs)
regard.view(rec.trace(tokenizer=tokenizer))
"""

from regard.interop.huggingface.attention import NAME, register
from regard.viewer.record.external.faithfulness import check_faithfulness

__all__ = ["NAME", "check_faithfulness", "register"]

register()
