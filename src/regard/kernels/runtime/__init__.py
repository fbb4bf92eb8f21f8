"""What the kernels in Triton ask of a GPU, and what they do where it has less. Nothing here imports triton by itself."""
