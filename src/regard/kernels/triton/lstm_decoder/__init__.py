"""One step of an attentional LSTM decoder in Triton, there and back: what models/looped.py runs. All here import triton."""
