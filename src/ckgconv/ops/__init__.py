"""Pure tensor functions: each equation as `naive` code, and faster implementations that are tested against it."""
