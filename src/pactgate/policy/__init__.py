"""Rules of conduct, one a module: pure, or over a store they are handed."""
