"""Documents to term vectors at length one: what every method for text in fiedler starts from [lpi, section 5.1].

The words are counted by scikit-learn's vectorisers; here are the choices the papers make (term frequencies, stop words
removed, rows at length one) and a word about documents of which nothing is left.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._validation import check_int, choose
from ..core.rows import normalize_rows
from .read import as_documents

WEIGHTS = {"tf": False, "tfidf": True}  # whether rare terms count more
NO_TERMS = ("empty vocabulary", "no terms remain")  # how scikit-learn says it


class DocumentVectorizer(TransformerMixin, BaseEstimator):
    r"""Raw documents to a sparse matrix of unit rows, one column a term.

    Parameters
    ----------
    weight : {'tf', 'tfidf'}, default='tf'
        Term frequencies, the papers' choice, or the same with rare terms raised.
    stop_words : {'english'}, list of str or None, default='english'
        Words that carry no topic.
    min_df : int or float, default=1
        Terms in fewer documents than this (a number, or a share) are left out.
    max_df : int or float, default=1.0
        And those in more.
    ngram_range : tuple of two ints, default=(1, 1)
        Shortest and longest sequence of words that counts as a term.
    n_hashed : int, optional
        Hash terms into this many columns instead of keeping a vocabulary: for very large or endless collections. Terms
        then have no names.
    token_pattern : str, default=r"(?u)\b[^\W\d_]{2,}\b"
        What a word is: letters only, at least two.

    Attributes
    ----------
    vocabulary_ : dict
        Term to column; not with ``n_hashed``.
    empty_ : array
        The documents seen that have no term left.

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
        weight: str = "tf",
        *,
        stop_words: Any = "english",
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        ngram_range: tuple[int, int] = (1, 1),
        n_hashed: int | None = None,
        token_pattern: str = r"(?u)\b[^\W\d_]{2,}\b",
    ) -> None:
        self.weight = weight
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.ngram_range = ngram_range
        self.n_hashed = n_hashed
        self.token_pattern = token_pattern

    def fit(self, documents: Any, y: Any = None) -> DocumentVectorizer:
        """Learn the vocabulary, and how rare its terms are."""
        self.fit_transform(documents)
        return self

    def fit_transform(self, documents: Any, y: Any = None) -> sp.csr_array:
        """Learn the vocabulary and give the vectors of the documents."""
        rare_counts_more = choose(WEIGHTS, self.weight, option="weight")
        texts = _texts(documents)
        self._counter = self._make_counter()
        try:
            counts = self._counter.fit_transform(texts)
        except re.error as error:
            raise ValueError(f"token_pattern={self.token_pattern!r} is no regular expression: {error}") from error
        except ValueError as error:
            if not any(sign in str(error) for sign in NO_TERMS):
                raise
            raise ValueError(
                f"no term is left of {len(texts)} document(s): {str(error).rstrip('.')}; relax stop_words, min_df, "
                "max_df or token_pattern"
            ) from error
        self.__dict__.pop("vocabulary_", None)
        if self.n_hashed is None:
            self.vocabulary_ = self._counter.vocabulary_
        self._idf = TfidfTransformer(norm=None).fit(counts) if rare_counts_more else None
        X = self._finish(counts)
        self.empty_ = np.flatnonzero(np.diff(X.indptr) == 0)
        return X

    def transform(self, documents: Any) -> sp.csr_array:
        """The vectors of documents, in the terms that were learned."""
        check_is_fitted(self, "_counter")
        return self._finish(self._counter.transform(_texts(documents)))

    def counts(self, documents: Any) -> sp.csr_array:
        """How often each learned term occurs in each document, as :func:`describe_clusters` wants it."""
        check_is_fitted(self, "_counter")
        return sp.csr_array(self._counter.transform(_texts(documents)))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The terms, in the order of the columns."""
        check_is_fitted(self, "_counter")
        if hasattr(self._counter, "vocabulary_"):
            return self._counter.get_feature_names_out()
        return np.array([f"term{column}" for column in range(self._counter.n_features)], dtype=object)

    def _make_counter(self) -> Any:
        shared = {
            "stop_words": self.stop_words,
            "ngram_range": self.ngram_range,
            "token_pattern": self.token_pattern,
            "dtype": np.float64,
        }
        if self.n_hashed is None:
            return CountVectorizer(min_df=self.min_df, max_df=self.max_df, **shared)
        if self.min_df != 1 or self.max_df != 1.0:
            raise ValueError("min_df and max_df need a vocabulary, which hashing does without; leave them, or n_hashed")
        return HashingVectorizer(
            n_features=check_int(self.n_hashed, "n_hashed"), alternate_sign=False, norm=None, **shared
        )

    def _finish(self, counts: Any) -> sp.csr_array:
        weighted = counts if self._idf is None else self._idf.transform(counts)
        X = normalize_rows(sp.csr_array(weighted))
        empty = np.flatnonzero(np.diff(X.indptr) == 0)
        if len(empty):
            shown = ", ".join(str(row) for row in empty[:3]) + (", ..." if len(empty) > 3 else "")
            warnings.warn(
                f"{len(empty)} document(s) hold no known term (rows {shown}) and become rows of zeros; they are kept, "
                "but resemble nothing",
                UserWarning,
                stacklevel=3,
            )
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _texts(documents: Any) -> list[str]:
    """The texts of a `Documents` record or of any list of them, accents as single characters."""
    texts = as_documents(documents).texts
    if not texts:
        raise ValueError("there are no documents; give at least one")
    return [unicodedata.normalize("NFC", text) for text in texts]
