"""Signatures of versions: what they catch that hashes do not, and what is said where they are missing, foreign or broken."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import Result
from commands import bench, error_line
from made_runs import made_run, made_runs

from bench.publish import build
from bench.publish.signature import NAMESPACE

pytestmark = pytest.mark.skipif(
    shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed"
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys of the publisher and of somebody else, and a file that allows the first."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "eve"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(made, check=True, capture_output=True)
    (folder / "signers").write_text("ada@example.org " + (folder / "ada.pub").read_text())
    return folder


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "_figures", lambda *_: ())
    made_runs(tmp_path / "runs", {"simcse": 0.8}, seeds=(1, 2), suites=("check",))
    return tmp_path / "board"


def publish(out: Path, *more: str | Path) -> Result:
    return bench(
        "publish",
        "--runs",
        out.parent / "runs",
        "--out",
        out,
        "--statistics",
        "no",
        "--format",
        "md",
        *more,
    )


def check(out: Path, *more: str | Path) -> tuple[int, str]:
    done = bench("publish", "--check", "--out", out, *more)
    assert "Traceback" not in done.output
    return done.exit_code, done.stdout


def test_a_signed_version_is_vouched_for_by_a_key_that_lies_elsewhere(
    out: Path, keys: Path
) -> None:
    done = publish(out, "--sign", keys / "ada")
    assert done.exit_code == 0, done.output
    print_of = subprocess.run(
        ["ssh-keygen", "-lf", str(keys / "ada.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    said = done.stdout.splitlines()[-1]
    assert said.startswith("v1: Signed on 20") and print_of in said
    assert check(out, "--signers", keys / "signers")[0] == 0
    code, told = check(out)
    assert code == 0 and f"with the key {print_of}; --signers FILE says whose it is" in told
    statement = json.loads((out / "v1.signature.json").read_text())
    assert (
        statement["key"] == print_of
        and statement["manifest"]
        == json.loads((out / "versions.json").read_text())["versions"][0]["manifest"]
    )
    feed = ElementTree.parse(out / "feed.xml")
    (summary,) = [one.text for one in feed.iter("{http://www.w3.org/2005/Atom}summary")]
    assert (
        summary is not None
        and summary.endswith(said.removeprefix("v1: "))
        and said.removeprefix("v1: ") in (out / "README.md").read_text()
    )


def test_anybody_checks_it_with_ssh_keygen_alone(out: Path, keys: Path) -> None:
    """As docs/publish.md says it."""
    publish(out, "--sign", keys / "ada")
    page = (Path(__file__).resolve().parents[2] / "docs" / "publish.md").read_text()
    (line,) = [one for one in page.splitlines() if one.startswith("ssh-keygen -Y verify")]
    shutil.copy(keys / "signers", out / "SIGNERS")
    done = subprocess.run(line, shell=True, cwd=out, capture_output=True, text=True)
    assert done.returncode == 0 and NAMESPACE in line, done.stderr
    (out / "v1.signature.json").write_text((out / "v1.signature.json").read_text() + " ")
    assert (
        subprocess.run(line, shell=True, cwd=out, capture_output=True, check=False).returncode != 0
    )


def test_a_version_that_was_altered_and_rehashed_whole_is_found_with_the_signers_alone(
    out: Path, keys: Path
) -> None:
    publish(out, "--sign", keys / "ada")
    kept = {
        name: (out / name).read_bytes() for name in ("v1.signature.json", "v1.signature.json.sig")
    }
    shutil.rmtree(out)
    made_run(out.parent / "runs", "better", 1, suites=("check",))
    publish(out)
    assert check(out)[0] == 0, "every hash fits"
    code, told = check(out, "--signers", keys / "signers")
    assert code == 1 and "v1.signature.json: v1 is not signed" in told
    for name, data in kept.items():
        (out / name).write_bytes(data)
    for more in ((), ("--signers", keys / "signers")):
        code, told = check(out, *more)
        assert code == 1 and "another MANIFEST.json was signed than that of v1" in told
    for name in kept:
        (out / name).unlink()
    assert publish(out, "--sign", keys / "eve").exit_code == 0 and check(out)[0] == 0
    code, told = check(out, "--signers", keys / "signers")
    assert code == 1 and "which is none of " in told


@pytest.mark.parametrize("what", ["key", "date", "manifest", "sig", "json", "schema"])
def test_what_was_changed_of_a_signature_is_found_without_signers(
    out: Path, keys: Path, what: str
) -> None:
    publish(out, "--sign", keys / "ada")
    path, signature = out / "v1.signature.json", out / "v1.signature.json.sig"
    content = json.loads(path.read_text())
    other = {
        "key": "SHA256:" + "A" * 43,
        "date": "2020-01-01T00:00:00Z",
        "manifest": "0" * 64,
        "schema": "x/1",
    }
    if what == "sig":
        signature.write_text(signature.read_text().replace("A", "B"))
    else:
        path.write_text("{" if what == "json" else json.dumps(content | {what: other[what]}))
    code, told = check(out)
    assert code == 1 and "v1.signature.json" in told
    assert publish(out, "--anyway").exit_code == (2 if what in ("json", "schema") else 0)


def test_the_next_version_is_signed_by_itself_and_keeps_the_word_on_the_last(
    out: Path, keys: Path
) -> None:
    publish(out)
    assert publish(out, "--sign", keys / "ada").exit_code == 0, (
        "nothing is new, and the version is signed"
    )
    before = (out / "v1.signature.json").read_bytes()
    publish(out, "--sign", keys / "ada")
    assert (out / "v1.signature.json").read_bytes() == before, "it is signed once"
    made_run(out.parent / "runs", "simcse", 3, suites=("check",))
    publish(out)
    assert "v2 is not signed" in check(out, "--signers", keys / "signers")[1]
    publish(out, "--sign", keys / "ada")
    assert check(out, "--signers", keys / "signers")[0] == 0
    for name in ("v1.signature.json", "v1.signature.json.sig"):
        (out / name).unlink()
    publish(out)
    assert check(out, "--signers", keys / "signers")[0] == 0, (
        "v2 keeps the hash of the manifest of v1"
    )


def test_mistakes_are_one_line_and_make_nothing(
    out: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no key" in error_line(publish(out, "--sign", keys / "nobody"))
    (keys / "text").write_text("no key at all")
    assert "is no key" in error_line(publish(out, "--sign", keys / "text"))
    assert not out.exists()
    assert "--sign goes with none of" in error_line(
        bench("publish", "--check", "--out", out, "--sign", keys / "ada")
    )
    assert "--signers goes with --check" in error_line(publish(out, "--signers", keys / "signers"))
    publish(out, "--sign", keys / "ada")
    assert "no file" in error_line(
        bench("publish", "--check", "--out", out, "--signers", keys / "nobody")
    )
    monkeypatch.setenv("PATH", "")
    assert check(out)[0] == 0 and "ssh-keygen is not installed here" in check(out)[1]
    assert "ssh-keygen is not installed" in error_line(
        bench("publish", "--check", "--out", out, "--signers", keys / "signers")
    )
    assert publish(out, "--anyway").exit_code == 0, "without a key all works"
