"""The two text forms side by side, and CxC-STS beside STS-B: what a run's page and ``bench runs RUN`` say of them."""

from __future__ import annotations

from factories import record, sts_scores

from bench.runs import Score
from bench.show.tables import report


def test_every_task_that_has_both_forms_stands_beside_itself() -> None:
    tokenised, raw = sts_scores(70), sts_scores(68.004, text="raw", tasks=("STS12", "STS-B"))
    section = report.text_forms(record(scores=(*tokenised, *raw)))
    assert section.heading == ("task", "papers' text", "raw text", "raw less papers'")
    values = {(one.task, one.text): one.value for one in (*tokenised, *raw)}
    assert [row[0] for row in section.rows] == ["sts: STS12", "sts: STS-B"]
    for task, row in zip(("STS12", "STS-B"), section.rows, strict=True):
        first, second = round(values[task, "tokenised"], 2), round(values[task, "raw"], 2)
        assert row[1:] == (f"{first:.2f}", f"{second:.2f}", f"{second - first:+.2f}")


def cxc(value: float, protocol: str, task: str = "CxC-STS") -> Score:
    return Score(
        suite="cxc", task=task, protocol=protocol, metric="spearman", value=value, n=44045, std=0.5
    )


def test_the_gap_is_cxc_less_sts_b_for_each_protocol_and_form() -> None:
    near = [
        Score(
            suite="sts",
            task="STS-B",
            protocol="senteval-all/1",
            metric="spearman",
            value=value,
            n=1379,
            text=text,
        )
        for value, text in ((80.004, "tokenised"), (82.5, "raw"))
    ]
    section = report.domain_shift(
        record(
            scores=(*near, cxc(70.5, "cxc-promcse/1"), cxc(72, "cxc-parekh/1", "CxC-STS-parekh"))
        )
    )
    assert section.rows == (
        ("cxc-promcse/1", "tokenised", "80.00", "70.50", "-9.50"),
        ("cxc-parekh/1", "tokenised", "80.00", "72.00", "-8.00"),
        ("cxc-promcse/1", "raw", "82.50", "70.50", "-12.00"),
        ("cxc-parekh/1", "raw", "82.50", "72.00", "-10.50"),
    )
    assert report.domain_shift(record(scores=(cxc(70, "cxc-promcse/1"),))).rows == ()
