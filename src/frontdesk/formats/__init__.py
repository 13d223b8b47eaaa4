"""Pure forms that several rooms share."""
