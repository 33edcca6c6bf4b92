"""Documents as term vectors of unit length, the input of all text methods [lpi, section 5.1], and clusters in words.

Words are counted by scikit-learn's vectorisers. Added here are the choices of the papers (term frequencies, no stop
words, unit rows) and a warning about documents without any term.

Clusters are described by characteristic terms, the most typical documents, and a short name. Terms are ranked by
class-based tf-idf: with f_tc the relative frequency of term t among the words of cluster c,

    score(t, c) = f_tc · log(1 + 1 / Σ_c' f_tc')

so a term that is used in every cluster has a low score, however frequent it is, and large clusters have no more
influence than small ones (Grootendorst 2022 uses the same product with counts).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._typing import LabelsLike, MatrixLike
from .._validation import check_data, check_int, check_labels, choose, first_few
from ..core.arrays import normalize_row_sums, normalize_rows
from ..core.fitting import restore_on_failure
from ..errors import InputError, InputTypeError, NoKnownTermsWarning, warn


@dataclass(frozen=True)
class Documents:
    """Texts with their names; their length is the number of texts, and two lists are unpacked from them.

    Attributes
    ----------
    texts : list of str
        The documents.
    names : list of str
        The file, line or row that each document comes from.

    Examples
    --------
    >>> from fiedler.io import read_documents
    >>> documents = read_documents(["a first document", "a second one", "a third"])
    >>> len(documents)
    3
    >>> texts, names = documents
    >>> texts[1]
    'a second one'
    """

    texts: list[str]
    names: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[list[str]]:
        return iter((self.texts, self.names))


def as_documents(texts: Iterable[str] | Documents) -> Documents:
    """Return documents named by their position, from any iterable of texts; :class:`Documents` as they are."""
    if isinstance(texts, Documents):
        return texts
    if isinstance(texts, str):
        problem = "documents must be a list with one text each; got a single text"
        raise InputError(problem, "pass a list, or use read_documents to read a path", code="single_text")
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or not isinstance(texts, Iterable):
        problem = f"documents must be a list of texts; got {type(texts).__name__}"
        raise InputTypeError(problem, "of a table, pass one column", code="invalid_documents")
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            problem = f"document {position} is {type(text).__name__}, not text"
            hint = "convert it, or use '' for an empty document"
            raise InputTypeError(problem, hint, code="invalid_document", row=position)
    return Documents(texts, [str(position) for position in range(len(texts))])


def check_documents(texts: Iterable[str] | Documents, source: str = "the list") -> Documents:
    """Return documents, of which there is at least one; warn about empty and duplicate ones."""
    documents = as_documents(texts)
    if not documents.texts:
        raise InputError(f"{source} contains no documents", "pass at least one", code="no_documents")
    empty = [name for text, name in zip(*documents) if not text.strip()]
    if empty:
        problem = f"{len(empty)} document(s) are empty ({first_few(empty)}); they are kept and belong to no cluster"
        warn(problem, code="empty_documents", n_documents=len(empty), names=empty, stacklevel=3)
    seen: set[str] = set()
    duplicates = []
    for text, name in zip(*documents):
        if text in seen:
            duplicates.append(name)
        elif text.strip():
            seen.add(text)
    if duplicates:
        problem = f"{len(duplicates)} document(s) are copies of others ({first_few(duplicates)}); all are kept"
        warn(problem, code="duplicate_documents", n_documents=len(duplicates), names=duplicates, stacklevel=3)
    return documents


# --------------------------------------------------------------------------------------------------------- term vectors

TERM_WEIGHTS = {"tf": False, "tfidf": True}  # name -> whether terms are weighted by inverse document frequency


class DocumentVectorizer(TransformerMixin, BaseEstimator):
    r"""Convert raw documents to a sparse matrix of unit rows, one column per term.

    Parameters
    ----------
    weight : {'tf', 'tfidf'}, default='tf'
        Term frequencies, as in the papers, or term frequencies times inverse document frequencies.
    stop_words : {'english'}, list of str or None, default='english'
        Words to ignore.
    min_df : int or float, default=1
        Ignore terms in fewer documents than this number (int) or fraction (float).
    max_df : int or float, default=1.0
        Ignore terms in more documents than this number (int) or fraction (float).
    ngram_range : tuple of two ints, default=(1, 1)
        The minimum and maximum number of words in a term.
    n_hash_features : int, optional
        Hash terms into this many columns instead of storing a vocabulary, for very large collections or streams. Terms
        then have no names.
    token_pattern : str, default=r"(?u)\b[^\W\d_]{2,}\b"
        Regular expression of a word: by default two letters or more.

    Attributes
    ----------
    vocabulary_ : dict
        The column of each term; not available with ``n_hash_features``.
    empty_rows_ : ndarray
        Row numbers of the training documents without any term.

    Examples
    --------
    >>> from fiedler.text import DocumentVectorizer
    >>> words = DocumentVectorizer()
    >>> X = words.fit_transform(["The cat chased a cat", "dogs and cats"])
    >>> words.get_feature_names_out().tolist()
    ['cat', 'cats', 'chased', 'dogs']
    >>> X.toarray().round(2)
    array([[0.89, 0.  , 0.45, 0.  ],
           [0.  , 0.71, 0.  , 0.71]])
    """

    def __init__(
        self,
        weight: Literal["tf", "tfidf"] = "tf",
        *,
        stop_words: Literal["english"] | list[str] | None = "english",
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        ngram_range: tuple[int, int] = (1, 1),
        n_hash_features: int | None = None,
        token_pattern: str = r"(?u)\b[^\W\d_]{2,}\b",
    ) -> None:
        self.weight = weight
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.ngram_range = ngram_range
        self.n_hash_features = n_hash_features
        self.token_pattern = token_pattern

    def fit(self, documents: Iterable[str], y: object = None) -> Self:
        """Learn the vocabulary and, for 'tfidf', the document frequencies."""
        self.fit_transform(documents)
        return self

    def fit_transform(self, documents: Iterable[str], y: object = None) -> sp.csr_array:
        """Learn the vocabulary and return the vectors of the documents."""
        use_idf = choose(TERM_WEIGHTS, self.weight, option="weight")
        texts = _texts(documents)
        counter = self._make_counter()
        counts = self._count_terms(counter, texts)
        with restore_on_failure(self):
            self.__dict__.pop("vocabulary_", None)
            self._counter = counter
            if self.n_hash_features is None:
                self.vocabulary_ = counter.vocabulary_
            self._idf = TfidfTransformer(norm=None).fit(counts) if use_idf else None
            X = self._to_unit_rows(counts)
            self.empty_rows_ = np.flatnonzero(np.diff(X.indptr) == 0)
        return X

    def transform(self, documents: Iterable[str]) -> sp.csr_array:
        """Return the vectors of documents in the terms that were learned."""
        check_is_fitted(self, "_counter")
        return self._to_unit_rows(self._counter.transform(_texts(documents)))

    def counts(self, documents: Iterable[str]) -> sp.csr_array:
        """Count the learned terms in each document, as input for :func:`describe_clusters`."""
        check_is_fitted(self, "_counter")
        return sp.csr_array(self._counter.transform(_texts(documents)))

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the terms in the order of the columns."""
        check_is_fitted(self, "_counter")
        if hasattr(self._counter, "vocabulary_"):
            return self._counter.get_feature_names_out()
        return np.array([f"term{column}" for column in range(self._counter.n_features)], dtype=object)

    def _make_counter(self) -> CountVectorizer | HashingVectorizer:
        try:
            shortest, longest = self.ngram_range
            valid = 1 <= shortest <= longest
        except (TypeError, ValueError):  # not two numbers
            valid = False
        if not valid:
            problem = f"ngram_range={self.ngram_range!r} must be two integers, 1 <= shortest <= longest"
            raise InputError(problem, code="invalid_parameter", parameter="ngram_range", value=self.ngram_range)
        shared = {name: getattr(self, name) for name in ("stop_words", "ngram_range", "token_pattern")}
        shared["dtype"] = np.float64
        if self.n_hash_features is None:
            return CountVectorizer(min_df=self.min_df, max_df=self.max_df, **shared)
        if self.min_df != 1 or self.max_df != 1.0:
            problem = "min_df and max_df need a vocabulary, which hashing does not store"
            hint = "leave out min_df and max_df, or n_hash_features"
            raise InputError(problem, hint, code="incompatible_parameters", parameter="n_hash_features")
        n_features = check_int(self.n_hash_features, "n_hash_features")
        return HashingVectorizer(n_features=n_features, alternate_sign=False, norm=None, **shared)

    def _count_terms(self, counter: CountVectorizer | HashingVectorizer, texts: list[str]) -> sp.csr_matrix:
        """Fit the counter and count, with errors of scikit-learn turned into ours."""
        try:
            counter.build_analyzer()
        except re.error as error:
            problem = f"token_pattern={self.token_pattern!r} is not a regular expression: {error}"
            raise InputError(
                problem, code="invalid_parameter", parameter="token_pattern", value=self.token_pattern
            ) from error
        except (TypeError, ValueError) as error:
            raise InputError(f"stop_words or token_pattern is invalid: {error}", code="invalid_parameter") from error
        try:
            return counter.fit_transform(texts)
        except (TypeError, ValueError) as error:  # scikit-learn's error for an invalid parameter is both
            if isinstance(error, TypeError) or _has_terms(counter, texts):
                raise InputError(str(error).rstrip("."), code="invalid_parameter") from error
            problem = f"no term remains in {len(texts)} document(s)"
            hint = "relax stop_words, min_df, max_df or token_pattern, or use longer texts"
            raise InputError(problem, hint, code="no_terms", n_documents=len(texts)) from error

    def _to_unit_rows(self, counts: sp.csr_matrix) -> sp.csr_array:
        """Weight the terms and scale the rows to unit length; warn if there are rows of zeros."""
        weighted = counts if self._idf is None else self._idf.transform(counts)
        X = normalize_rows(sp.csr_array(weighted))
        empty = np.flatnonzero(np.diff(X.indptr) == 0)
        if len(empty):
            rows, n = first_few([str(row) for row in empty]), len(empty)
            problem = f"{n} document(s) contain no known term (rows {rows}); they are kept as rows of zeros"
            problem += ", similar to no other"
            about: dict[str, Any] = {"n_documents": n, "rows": empty.tolist()}
            warn(problem, code="no_known_terms", category=NoKnownTermsWarning, stacklevel=3, **about)
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _has_terms(counter: CountVectorizer, texts: list[str]) -> bool:
    """Whether a term is within the limits on document frequency, or the limits contradict each other."""
    analyze = counter.build_analyzer()
    frequencies = Counter(term for text in texts for term in set(analyze(text)))
    limits = (counter.min_df, counter.max_df)
    low, high = (limit * len(texts) if isinstance(limit, float) else limit for limit in limits)
    return low > high or any(low <= frequency <= high for frequency in frequencies.values())


def _texts(documents: Iterable[str]) -> list[str]:
    """Return the texts with accents as single characters (NFC)."""
    texts = as_documents(documents).texts
    if not texts:
        raise InputError("there are no documents", "pass at least one", code="no_documents")
    return [unicodedata.normalize("NFC", text) for text in texts]


# ---------------------------------------------------------------------------------------------------- clusters in words


@dataclass(frozen=True)
class ClusterDescription:
    """Description of one cluster of documents.

    Attributes
    ----------
    cluster : int or str
        The label of the cluster.
    size : int
        The number of documents.
    name : str
        The three highest-ranked terms.
    terms : list of (str, float)
        The highest-ranked terms with their class-based tf-idf, in descending order.
    documents : list of int
        Row numbers of the most central documents, closest to the mean direction first.

    Examples
    --------
    >>> from fiedler.text import ClusterDescription
    >>> print(ClusterDescription(3, 120, "filter, signal, frequency", [("filter", 0.9)], [17]))
    3: filter, signal, frequency (120 documents)
    """

    cluster: int | str
    size: int
    name: str
    terms: list[tuple[str, float]]
    documents: list[int]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.name} ({self.size} documents)"


def describe_clusters(
    counts: MatrixLike, labels: LabelsLike, terms: Sequence[str], *, n_terms: int = 10, n_documents: int = 3
) -> list[ClusterDescription]:
    """Describe every cluster by its terms, typical documents, size and name, in the order of the labels.

    Parameters
    ----------
    counts : sparse matrix or array of shape (n_documents, n_terms)
        Term counts, or any non-negative weights of terms.
    labels : array of shape (n_documents,)
        The cluster of each document; -1 means no cluster and is not described.
    terms : sequence of str
        The name of each column.
    n_terms : int, default=10
        The number of terms per cluster.
    n_documents : int, default=3
        The number of typical documents per cluster.

    Returns
    -------
    list of ClusterDescription
        One description per cluster.

    Examples
    --------
    >>> from fiedler.text import DocumentVectorizer, describe_clusters
    >>> texts = ["a cat, a cat", "cat and mouse", "stocks fell", "stocks and bonds"]
    >>> words = DocumentVectorizer().fit(texts)
    >>> for cluster in describe_clusters(words.counts(texts), [0, 0, 1, 1], words.get_feature_names_out()):
    ...     print(cluster)
    0: cat, mouse (2 documents)
    1: stocks, bonds, fell (2 documents)
    """
    X = sp.csr_array(check_data(counts))
    labels = check_labels(labels, n_samples=X.shape[0])
    n_terms, n_documents = check_int(n_terms, "n_terms"), check_int(n_documents, "n_documents")
    if len(terms) != X.shape[1]:
        problem = f"terms has {len(terms)} names, but counts has {X.shape[1]} columns"
        raise InputError(problem, "pass one name per column", code="wrong_length", parameter="terms")
    if X.nnz and X.data.min() < 0:
        problem = "counts has negative entries"
        raise InputError(problem, "pass term counts, not coordinates", code="negative_counts", parameter="counts")
    clusters = [cluster for cluster in np.unique(labels) if not (labels.dtype.kind in "if" and cluster == -1)]
    if not clusters:
        return []
    members, descriptions = [np.flatnonzero(labels == cluster) for cluster in clusters], []
    for cluster, rows, score in zip(clusters, members, class_tfidf(X, members)):
        top = [column for column in np.argsort(-score, kind="stable")[:n_terms] if score[column] > 0]
        ranked = [(str(terms[column]), float(score[column])) for column in top]
        name = ", ".join(term for term, _ in ranked[:3]) or "no terms"
        unit_rows = normalize_rows(X[rows])
        similarity = unit_rows @ np.asarray(unit_rows.sum(axis=0)).ravel()  # to the mean direction
        central = rows[np.argsort(-similarity, kind="stable")[:n_documents]].tolist()
        descriptions.append(ClusterDescription(cluster.item(), len(rows), name, ranked, central))
    return descriptions


def class_tfidf(X: sp.csr_array, members: list[np.ndarray]) -> np.ndarray:
    """Return score(t, c) of every term in every cluster, shape (n_clusters, n_terms)."""
    counts = np.array([np.asarray(X[rows].sum(axis=0)).ravel() for rows in members])
    frequency = normalize_row_sums(counts)
    total = frequency.sum(axis=0)
    return frequency * np.log1p(1 / np.where(total > 0, total, 1))
