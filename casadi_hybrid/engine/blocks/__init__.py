"""Functions of a problem as machine code: what repeats in them is compiled once."""
