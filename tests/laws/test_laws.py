"""A few examples of every law; ``make fuzz`` runs many."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from . import fuzz
from .functions import FUNCTION_LAWS
from .guard import LawBroken
from .laws import LAWS
from .subjects import subjects

FEW = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # cases are short as they are
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_estimators_obey_the_law(name):
    law = LAWS[name]
    about = [one for one in subjects() if law.applies(one)]

    @FEW
    @given(st.data())
    def examples(data):
        subject = data.draw(st.sampled_from(about), label="subject")
        law.check(subject, data.draw(law.cases(subject), label="case"))

    examples()


@pytest.mark.parametrize("name", FUNCTION_LAWS)
def test_functions_obey_the_law(name):
    law = FUNCTION_LAWS[name]

    @FEW
    @given(law.cases())
    def examples(case):
        law.check(case)

    examples()


# ---------------------------------------------------------------------------------------------------------- the driver


@pytest.mark.slow
def test_a_run_continues_where_the_last_one_ended(tmp_path, monkeypatch):
    record = tmp_path / "record.jsonl"
    monkeypatch.setattr(fuzz, "pairs_of_law_and_subject", lambda: [("metrics", fuzz.FUNCTION)])
    fuzz.run(record, 2 * fuzz.BATCH, jobs=1)
    first = record.read_text().splitlines()
    record.write_text(f"{first[0]}\n{first[1][:20]}")  # the second unit was interrupted while its line was written
    fuzz.run(record, 3 * fuzz.BATCH, jobs=1)

    lines = fuzz.read(record)
    assert [unit.batch for unit in lines] == [0, 1, 2]
    assert lines[fuzz.Unit("metrics", fuzz.FUNCTION, 1)]["examples"] == fuzz.BATCH
    assert record.read_text().startswith(first[0])


def test_a_defect_is_recorded_with_the_case_that_shows_it(monkeypatch):
    def broken(case):
        raise LawBroken("a kind", "details")

    cases = LAWS["scale"].cases(subjects()[0])
    monkeypatch.setattr(fuzz, "law_of", lambda law, subject: (broken, cases))
    line = fuzz.run_unit(fuzz.Unit("scale", subjects()[0].name, 0))

    assert len(line["defects"]) == fuzz.MAX_DEFECTS
    assert line["defects"][0]["message"] == "a kind: details"
    case = fuzz.case_from(line["defects"][0]["case"])
    assert repr(case) == line["defects"][0]["case"]
    assert fuzz.totals([json.loads(json.dumps(line))])["scale"]["defects"] == fuzz.MAX_DEFECTS


def test_the_table_of_the_documentation_is_the_one_of_the_record():
    page = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    lines = fuzz.read(Path(__file__).with_name("record.jsonl")).values()

    assert page.partition(fuzz.BEGIN)[2].partition(fuzz.END)[0].strip() == fuzz.table(lines)
