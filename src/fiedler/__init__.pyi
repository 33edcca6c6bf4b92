"""Generated from _registry.py by ``make stubs``; do not edit."""

from . import baselines as baselines
from . import clustering as clustering
from . import core as core
from . import datasets as datasets
from . import embedding as embedding
from . import errors as errors
from . import graph as graph
from . import io as io
from . import metrics as metrics
from . import mixture as mixture
from . import persistence as persistence
from . import plots as plots
from . import report as report
from . import supervision as supervision
from . import table as table
from . import text as text
from ._records import FitHistory as FitHistory
from .clustering.cost import estimate as estimate
from .clustering.documents import LPIClustering as LPIClustering
from .clustering.embed_kmeans import EmbedKMeans as EmbedKMeans
from .clustering.genie import GenieLinkage as GenieLinkage
from .clustering.manifold import ManifoldClustering as ManifoldClustering
from .clustering.manifold import cluster as cluster
from .clustering.n_clusters import choose_n_clusters as choose_n_clusters
from .clustering.spectral import SpectralClustering as SpectralClustering
from .embedding.directions import Directions as Directions
from .embedding.eigenmaps import LaplacianEigenmaps as LaplacianEigenmaps
from .embedding.lpi import LPI as LPI
from .embedding.nle import NLE as NLE
from .embedding.whitening import Whitening as Whitening
from .graph.affinity import AffinityGraph as AffinityGraph
from .graph.constraints import PairwiseConstraints as PairwiseConstraints
from .graph.labels import LabelGraph as LabelGraph
from .graph.landmarks import LandmarkGraph as LandmarkGraph
from .graph.recipes import FullGraph as FullGraph
from .graph.recipes import KNNGraph as KNNGraph
from .graph.recipes import RadiusGraph as RadiusGraph
from .mixture.gaussian import GaussianMixture as GaussianMixture
from .mixture.lapgmm import LapGMM as LapGMM
from .mixture.lcgmm import LCGMM as LCGMM
from .persistence import load as load
from .persistence import save as save
from .supervision.learned_laplacian import LearnedLaplacian as LearnedLaplacian
from .supervision.llgc import LLGC as LLGC

__version__: str
