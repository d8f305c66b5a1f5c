"""Learning: from rows and logs to networks."""

from rspmn.learn.clustering import BehaviouralSplit, RowClustering
from rspmn.learn.config import LearnConfig, LearnInfo, Progress
from rspmn.learn.independence import GTest, IndependenceTest
from rspmn.learn.kmeans import KMeansClustering
from rspmn.learn.learn_spmn import learn_spmn
from rspmn.learn.learn_spn import learn_spn
from rspmn.learn.rdc import RDC

__all__ = [
    "RDC",
    "BehaviouralSplit",
    "GTest",
    "IndependenceTest",
    "KMeansClustering",
    "LearnConfig",
    "LearnInfo",
    "Progress",
    "RowClustering",
    "learn_spmn",
    "learn_spn",
]
