"""What makes a model fast on a CPU: fewer passes over memory, memory that is kept, equal rows evaluated once."""
