"""The numbers behind every picture: curves along time, rollout and flow, and weights in eight bits."""
