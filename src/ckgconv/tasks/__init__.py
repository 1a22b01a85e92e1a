"""Prediction + target → loss in training, metric in evaluation."""
