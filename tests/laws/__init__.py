"""Laws that every estimator and function obeys, checked on generated data.

``strategies`` describes the data, ``subjects`` what each estimator promises, ``laws`` and ``functions`` the laws;
``test_laws`` runs a few examples of each, and ``fuzz`` as many as wanted, with a record.
"""
