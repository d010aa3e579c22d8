"""Hessians without second derivatives: Gauss–Newton and block-wise quasi-Newton."""
