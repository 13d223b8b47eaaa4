"""What an outside part must do."""
