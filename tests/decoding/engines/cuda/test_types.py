import torch

from regard.decoding.engines.cuda.types import Engine, Steps

from .small import PRE, SOURCE, model


def test_both_kinds_of_decoders_keep_the_promises():
    from regard.decoding.engines.cuda import generic, transformer

    for kind, file in ((PRE, transformer), ("recurrent, recurrent, lstm, luong", generic)):
        built = model(kind)
        with torch.no_grad():
            memory = built.encode(SOURCE)
            engine = file.Engine(built.decoder, torch.float32)
            assert isinstance(engine, Engine)
            assert engine.vocabulary == 60
            steps = engine.steps(memory, 4, 1, 16)
            assert isinstance(steps, Steps)
            logits = steps.prepare(torch.zeros(4).long(), torch.zeros(4, 1).long(), torch.zeros(1).long())
            assert (logits.shape, logits.dtype) == ((1, 60), torch.float32)
