"""Group norm and batch norm over the kept positions of feature maps, fused with residual and ReLU."""
