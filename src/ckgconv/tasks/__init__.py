"""Prediction + target → loss."""
