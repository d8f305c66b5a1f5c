"""Worlds whose answers are known: domains to learn from and to test against."""
