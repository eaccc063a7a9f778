"""Evidence processes: nonnegative martingales that refute a parameter or an item once they are large."""
