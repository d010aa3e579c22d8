"""Model predictive control: an optimal control problem solved again at every measurement."""
