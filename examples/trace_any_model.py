"""See where any PyTorch model looked: nn.MultiheadAttention in a page, a file and a figure, in a few lines."""

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import nn

from regard.viewer.trace import Trace

out = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
source, target = ["Tom", "chases", "Jerry", "<eos>"], ["汤姆", "追逐", "杰瑞", "<eos>"]
torch.manual_seed(0)
attention = nn.MultiheadAttention(embed_dim=32, num_heads=4, batch_first=True).eval()
queries, keys = torch.randn(1, len(target), 32), torch.randn(1, len(source), 32)
_, weights = attention(queries, keys, keys, average_attn_weights=False)  # (batch, heads, queries, keys)

trace = Trace.from_arrays(weights[0], query=target, key=source, name="decoder.cross", title="Tom chases Jerry")
print(trace.strength("received").round(2))  # what each source token receives, against 1 for an even attention
print(trace.save(out / "any.attn.safetensors"))  # regard view any.attn.safetensors
print(trace.to_html(out / "any.html"))  # one file that opens anywhere, without a network
if find_spec("matplotlib"):
    trace.figure("heatmap", attention="decoder.cross").savefig(out / "any.pdf")
    print(out / "any.pdf")
