"""The queries compiled to flat arrays: the same answers as the definitions, faster."""
