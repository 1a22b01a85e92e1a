"""Settings of a recipe chosen by trials: Optuna proposes them, the validation split judges them."""
