"""What other packages ask of a model of the zoo; each needs an extra of its own."""
