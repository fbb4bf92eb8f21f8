"""One step of an attentional LSTM decoder in Triton, forward and backward. All files import triton."""
