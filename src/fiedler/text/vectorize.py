"""Term vectors of unit length from documents, the input of all text methods in fiedler [lpi, section 5.1].

Words are counted by scikit-learn's vectorisers. Added here are the choices of the papers (term frequencies, no stop
words, unit rows) and a warning about documents without any term.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int, choose, first_few
from ..core.arrays import normalize_rows
from ..core.fitting import restore_on_failure
from ..errors import InputError, NoKnownTermsWarning, warn
from .read import as_documents

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
            raise InputError(
                f"ngram_range={self.ngram_range!r} must be two integers, 1 <= shortest <= longest",
                code="invalid_parameter",
                parameter="ngram_range",
                value=self.ngram_range,
            )
        shared = {
            "stop_words": self.stop_words,
            "ngram_range": self.ngram_range,
            "token_pattern": self.token_pattern,
            "dtype": np.float64,
        }
        if self.n_hash_features is None:
            return CountVectorizer(min_df=self.min_df, max_df=self.max_df, **shared)
        if self.min_df != 1 or self.max_df != 1.0:
            raise InputError(
                "min_df and max_df need a vocabulary, which hashing does not store",
                "leave out min_df and max_df, or n_hash_features",
                code="incompatible_parameters",
                parameter="n_hash_features",
            )
        return HashingVectorizer(
            n_features=check_int(self.n_hash_features, "n_hash_features"), alternate_sign=False, norm=None, **shared
        )

    def _count_terms(self, counter: CountVectorizer | HashingVectorizer, texts: list[str]) -> sp.csr_matrix:
        """Fit the counter and count, with errors of scikit-learn turned into ours."""
        try:
            counter.build_analyzer()
        except re.error as error:
            raise InputError(
                f"token_pattern={self.token_pattern!r} is not a regular expression: {error}",
                code="invalid_parameter",
                parameter="token_pattern",
                value=self.token_pattern,
            ) from error
        except (TypeError, ValueError) as error:
            raise InputError(f"stop_words or token_pattern is invalid: {error}", code="invalid_parameter") from error
        try:
            return counter.fit_transform(texts)
        except (TypeError, ValueError) as error:  # scikit-learn's error for an invalid parameter is both
            if isinstance(error, TypeError) or _has_terms(counter, texts):
                raise InputError(str(error).rstrip("."), code="invalid_parameter") from error
            raise InputError(
                f"no term remains in {len(texts)} document(s)",
                "relax stop_words, min_df, max_df or token_pattern, or use longer texts",
                code="no_terms",
                n_documents=len(texts),
            ) from error

    def _to_unit_rows(self, counts: sp.csr_matrix) -> sp.csr_array:
        """Weight the terms and scale the rows to unit length; warn if there are rows of zeros."""
        weighted = counts if self._idf is None else self._idf.transform(counts)
        X = normalize_rows(sp.csr_array(weighted))
        empty = np.flatnonzero(np.diff(X.indptr) == 0)
        if len(empty):
            rows = first_few([str(row) for row in empty])
            warn(
                f"{len(empty)} document(s) contain no known term (rows {rows}); they are kept as rows of zeros, "
                "similar to no other",
                code="no_known_terms",
                category=NoKnownTermsWarning,
                n_documents=len(empty),
                rows=empty.tolist(),
                stacklevel=3,
            )
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _has_terms(counter: CountVectorizer, texts: list[str]) -> bool:
    """Whether a term is within the limits on document frequency, or the limits contradict each other."""
    analyze = counter.build_analyzer()
    frequencies = Counter(term for text in texts for term in set(analyze(text)))
    low, high = (
        limit * len(texts) if isinstance(limit, float) else limit for limit in (counter.min_df, counter.max_df)
    )
    return low > high or any(low <= frequency <= high for frequency in frequencies.values())


def _texts(documents: Iterable[str]) -> list[str]:
    """Return the texts with accents as single characters (NFC)."""
    texts = as_documents(documents).texts
    if not texts:
        raise InputError("there are no documents", "pass at least one", code="no_documents")
    return [unicodedata.normalize("NFC", text) for text in texts]
