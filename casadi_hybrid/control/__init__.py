"""Control as a control engineer writes it."""
