"""Transcription: from an optimal control problem to a nonlinear program and back."""
