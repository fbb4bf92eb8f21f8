"""Which of PyTorch's backends answers scaled_dot_product_attention on a GPU: the fastest of those that are right."""
