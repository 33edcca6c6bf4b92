"""Sentences of the documentation that quote the records of lcgmm."""

import numpy as np

from statements import BOTH, line, text, values


def test_notes_of_lcgmm_have_the_averages():
    notes = text("papers/lcgmm/NOTES.md")

    def mean(data, method):
        return [line("lcgmm", data, data, method, score).ours.value for score in BOTH]

    def rounded(data, method):
        return "/".join(f"{100 * value:.0f}" for value in mean(data, method))

    for score in (0, 1):  # "between GMM and LapGMM on USPS"
        gmm, lcgmm, lapgmm = (mean("usps", name)[score] for name in ("gmm", "lcgmm_paper", "lapgmm_variational"))
        assert gmm < lcgmm < lapgmm
    assert f"({rounded('tdt2', 'lcgmm_paper')} against {rounded('tdt2', 'gmm')})" in notes
    assert f"reaches {rounded('tdt2', 'lcgmm')}, that of LapGMM {rounded('tdt2', 'lapgmm')}." in notes
    for data in ("usps", "coil20"):
        assert line("lcgmm", data, data, "lcgmm_paper", "AC").ours.draws == 30
    assert line("lcgmm", "tdt2", "tdt2", "lcgmm_paper", "AC").ours.draws >= 10


def test_notes_of_lcgmm_compare_means_over_common_draws():
    """The means of a table are over 10 to 30 draws of TDT2."""
    scores = values("lcgmm", "tdt2")

    def common(one, other):
        means = {name: [] for name in (one, other)}
        for place in {key[2] for key in scores if key[1] == one}:
            for score in BOTH:
                columns = {name: scores["tdt2", name, place, score] for name in means}
                draws = set(columns[one]) & set(columns[other])
                assert 10 <= len(draws) <= 30
                for name, column in columns.items():
                    means[name].append((score, np.mean([column[draw] for draw in draws])))
        shown = {
            name: "/".join(f"{100 * np.mean([mean for kind, mean in found if kind == score]):.0f}" for score in BOTH)
            for name, found in means.items()
        }
        return f"{shown[one]} against {shown[other]}"

    text_of_both = f"{common('lcgmm_paper', 'gmm')}, and {common('lcgmm', 'lapgmm')}"
    assert f"on the draws that both have, {text_of_both}" in text("papers/lcgmm/NOTES.md")
