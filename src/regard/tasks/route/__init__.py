"""Route: points in, a short route through all of them out, learned by policy gradient."""
