"""Evidence processes: nonnegative martingales that refute a parameter or an item once they are large.

`likelihood_ratio` is the process and the evidence log E as a function of θ; `plug_in_bounds` proves lower bounds of it
over half-spaces, and where it is small.
"""
