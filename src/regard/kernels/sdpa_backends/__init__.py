"""Selection of the fastest correct backend of PyTorch's scaled_dot_product_attention on a GPU."""
