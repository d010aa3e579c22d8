"""The paper: its update law, rules, iterations, experiment, theorems and study."""
