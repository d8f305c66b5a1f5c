"""States that are numbers: interface nodes as soft boxes on a grid of knots."""
