"""One page that says what a synthetic table is worth and what was promised."""
