"""Models by name: states, controls, parameters, outputs; their steps and plants."""
