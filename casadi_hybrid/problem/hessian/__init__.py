"""Hessians without second derivatives: Gauss and Newton, and learned ones, block by block."""
