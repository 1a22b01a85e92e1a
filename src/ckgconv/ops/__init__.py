"""Pure tensor functions: the equation, and beside it what computes it faster."""
