"""FlexAttention for scopes: their block masks, and one compiled kernel for each structure."""
