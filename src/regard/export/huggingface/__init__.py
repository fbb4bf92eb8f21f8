"""A Transformer as a model of Hugging Face's transformers, with its tokenizer where that can be written."""
