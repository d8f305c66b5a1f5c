"""Experiments of the paper; they need a checkout and are not part of the installed package."""
