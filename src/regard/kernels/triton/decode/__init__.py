"""One query against a long memory in Triton: what decode runs. `launch` alone imports without Triton."""
