"""The plain Gaussian mixture: maximise Σ_i log Σ_k α_k N(x_i; μ_k, Σ_k) by EM."""

from __future__ import annotations

from .base import BaseMixture
from .em import EMState, GaussianHooks, MixtureHooks, MixtureProblem


class GaussianMixture(BaseMixture):
    """Mixture of Gaussians with sample weights, partial labels, known pairs and starts from a graph.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    graph : recipe, AffinityGraph or matrix, default=None
        Used by the starts 'spectral', 'community' and 'auto' and by ``predict_proba(use_graph=True)``; None is
        ``KNNGraph(9, weight="local", symmetrize="mean")``.
    covariance_type : {'full', 'tied', 'diag', 'spherical'}, default='full'
        The shape of the covariances: one matrix per component, one for all, variances along the axes, or one variance
        per component.
    ridge : float, 'auto' or 'oas', default='auto'
        Added to the variances, relative to the mean variance of the coordinates. 'auto' is 0.1 if there are as many
        parameters in the covariances as rows, whatever their weights, and less for fewer, down to 0.001. 'oas' shrinks
        each full or tied covariance towards a multiple of the identity instead, the further the fewer rows it is
        estimated from (Oracle Approximating Shrinkage; sample weights count as rows); the objective need not rise in
        every iteration then.
    pca : int, float or None, default=None
        Reduce the rows for the densities: to this number of principal components or, for a fraction, to this share of
        the variance.
    init : {'kmeans', 'spectral', 'community', 'random', 'nmf', 'auto'} or array, default='kmeans'
        The first memberships: by name, or labels (n,), or memberships (n, k). 'nmf' factorises rows without negative
        entries. 'auto' fits from communities, spectral clustering and k-means, and keeps the run whose partition has
        the highest modularity.
    n_init : int, default=1
        The number of starts; the run with the highest objective is kept.
    max_iter : int, default=200
        The maximum number of iterations.
    tol : float, default=1e-5
        Stop when the objective changes by at most this much per sample.
    random_state : int, RandomState or None, default=None
        Random seed or generator.
    verbose : bool, default=False
        Print a line per iteration, and progress on standard error before the first.

    Attributes
    ----------
    labels_ : array of shape (n,)
        The argmax of ``memberships_``.
    memberships_ : array of shape (n, k)
        The probability of every cluster for each row.
    weights_, means_, covariances_ : array
        The components; the shape of ``covariances_`` depends on ``covariance_type``.
    history_ : FitHistory
        The objective and, as terms, likelihood, penalty and mean change of the memberships, one value per iteration.
    objective_, likelihood_, penalty_ : float
        The last values of the history.
    n_iter_ : int
        The number of iterations.
    converged_ : bool
        Whether the tolerance was reached.
    graph_ : AffinityGraph or None
        The graph, if the start needed one.

    Examples
    --------
    >>> from fiedler import GaussianMixture
    >>> from fiedler.datasets import blobs
    >>> from fiedler.metrics import clustering_accuracy
    >>> X, y = blobs(n_samples=300, n_clusters=3, noise=0.5, random_state=0)
    >>> model = GaussianMixture(3, random_state=0).fit(X)
    >>> clustering_accuracy(y, model.labels_) > 0.9
    True
    """

    _needs_graph = False

    def _hooks(self, problem: MixtureProblem) -> MixtureHooks[EMState]:
        return GaussianHooks(problem)
