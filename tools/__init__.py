"""The commands behind `make`: run notebooks, check them, tell whether their outputs are current."""
