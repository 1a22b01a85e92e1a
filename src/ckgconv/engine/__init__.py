"""Runs a recipe: eager loop, checkpoints, records; the only room that knows devices, processes and seeds."""
