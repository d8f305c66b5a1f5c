"""Density estimation: mixtures of latent trees, estimated by expectation maximisation."""

from rspmn.learn.config import LatentTrees

__all__ = ["LatentTrees"]
