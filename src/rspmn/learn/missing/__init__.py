"""States that lack values: they are filled in before structure is learned."""
