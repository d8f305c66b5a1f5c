"""Learning: from rows and logs to networks."""

from rspmn.learn.config import LearnConfig, LearnInfo, Progress
from rspmn.learn.density import LatentTrees
from rspmn.learn.em import EMInfo, em
from rspmn.learn.info import RSPMNInfo
from rspmn.learn.learn_rspmn import learn_rspmn
from rspmn.learn.refit import RefitInfo, refit
from rspmn.learn.stages import Stages
from rspmn.learn.structure.independence import GTest, IndependenceTest
from rspmn.learn.structure.kmeans import KMeansClustering
from rspmn.learn.structure.learn_spmn import learn_spmn
from rspmn.learn.structure.learn_spn import learn_spn
from rspmn.learn.structure.rdc import RDC
from rspmn.learn.structure.split import BehaviouralSplit, RowClustering
from rspmn.learn.successors import Counts, Factored, FutureInfo, Successors

__all__ = [
    "RDC", "BehaviouralSplit", "Counts", "EMInfo", "Factored", "FutureInfo", "GTest",
    "IndependenceTest", "KMeansClustering", "LatentTrees", "LearnConfig", "LearnInfo", "Progress",
    "RSPMNInfo", "RefitInfo", "RowClustering", "Stages", "Successors", "em", "learn_rspmn",
    "learn_spmn", "learn_spn", "refit",
]  # fmt: skip
