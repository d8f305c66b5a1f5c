"""Data: logged episodes in, weighted windows out."""
