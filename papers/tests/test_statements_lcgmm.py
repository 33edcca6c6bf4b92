"""Sentences of the documentation that quote the records of lcgmm."""

from statements import BOTH, line, text


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
