"""Runs a recipe: optimiser and schedule."""
