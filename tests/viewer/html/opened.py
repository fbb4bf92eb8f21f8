"""A page's JSON of one trace, and the tensors that it names as arrays again."""

import base64
import gzip

import numpy as np

from regard.viewer.html.pack import Pack
from regard.viewer.html.payload import payload

TYPES = {"u8": np.uint8, "u32": np.uint32, "f16": np.float16, "f32": np.float32}


def opened(pack, ref):
    """The tensor that a page has under a name."""
    data = gzip.decompress(base64.b64decode(pack.blocks[ref["data"]]))
    return np.frombuffer(data, TYPES[ref["dtype"]]).reshape(ref["shape"])


def told(trace, budget=16_000_000, **options):
    """What a page says of a trace, and the tensors beside it."""
    pack = Pack(budget)
    return pack, payload([trace], pack, **options)["runs"][0]
