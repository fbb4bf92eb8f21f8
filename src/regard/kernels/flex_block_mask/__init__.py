"""FlexAttention for our scopes: which tiles they leave, and one compiled program for each structure."""
