"""The standard form min f(w) s.t. c(w) = 0, lower ≤ w ≤ upper, and its scaling."""
