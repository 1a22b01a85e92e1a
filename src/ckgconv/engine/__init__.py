"""Runs a recipe, eagerly or captured, and keeps checkpoints and a record.

The only room that chooses devices, processes and seeds.
"""
