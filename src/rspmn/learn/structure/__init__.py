"""Structure learning: LearnSPN and LearnSPMN, with their tests and clusterings."""
