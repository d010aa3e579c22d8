"""Text, files and figures that a user reads."""
