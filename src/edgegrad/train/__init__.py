"""Training without a framework: our operators, explicit gradients, and an optimiser by hand."""
