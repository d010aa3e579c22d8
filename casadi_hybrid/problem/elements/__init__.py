"""Derivatives by the elements of a problem: parts that share no value, most of them alike."""
