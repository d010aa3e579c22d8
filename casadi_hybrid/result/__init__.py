"""The course of a solve: its history, the record of one iteration, the printed log."""
