"""What a solve returns: the answer, its course, its explanation, its report."""
