"""Several horizons in one program: phases one after the other, scenarios side by side."""
