"""Signatures of versions by ``ssh-keygen -Y``, which users of git and ssh have, beside the versions: ``v2.signature.json`` and ``.sig``.

What is signed says which manifest, when and with which key; the manifest has the sha256 of every file, and of the manifest before it. Who a
key belongs to stands in a file of allowed signers, which a reader keeps elsewhere (``man ssh-keygen``, ALLOWED SIGNERS).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.base.errors import BenchError, DataDamaged, one_line
from bench.runs.record import loads
from bench.verify.findings import AGREES, DIFFERS, UNCHECKED, Finding

SCHEMA, NAMESPACE = "bench.signature/1", "bench-leaderboards"
_KEY = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
SECONDS = 300  # for whoever types a passphrase


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What was signed of a version."""

    version: str  # "v2"
    manifest: str  # sha256 of its MANIFEST.json
    date: str  # by the signer's clock, in UTC: "2026-11-22T13:06:09Z"
    key: str  # fingerprint: "SHA256:..."

    def words(self) -> str:
        return f"Signed on {self.date} with the key {self.key}; its MANIFEST.json has the sha256 {self.manifest}."


def signature_files(version: str) -> tuple[str, str]:
    """Names of what was signed, and of the signature."""
    return f"{version}.signature.json", f"{version}.signature.json.sig"


def read_signature(out: Path, version: str) -> Signature | None:
    """None where the version is not signed. Raises DataDamaged."""
    path, signed = (out / name for name in signature_files(version))
    if not path.is_file() or not signed.is_file():
        return None
    try:
        content = loads(path.read_bytes())
        if content.pop("schema") != SCHEMA or not all(
            isinstance(text, str) for text in content.values()
        ):
            raise ValueError(f"it is no {SCHEMA}")
        signature = Signature(**content)
        datetime.strptime(signature.date, "%Y-%m-%dT%H:%M:%SZ")
        if not _KEY.fullmatch(signature.key) or not re.fullmatch(
            "[0-9a-f]{64}", signature.manifest
        ):
            raise ValueError("its key or its hash is none")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataDamaged(
            f"{path} cannot be read: {one_line(error)}", "restore it: git checkout"
        ) from None
    return signature


def fingerprint(key: Path) -> str:
    """Of a key's file. Raises BenchError where it is none, or ssh-keygen is missing."""
    if not key.is_file():
        raise BenchError(
            f"no key {key}", "--sign with a key of ssh-keygen, such as ~/.ssh/id_ed25519"
        )
    done = _keygen(["-l", "-E", "sha256", "-f", str(key)])
    found = _KEY.search(done.stdout)
    if done.returncode or found is None:
        raise BenchError(f"{key} is no key: {_said(done)}", "ssh-keygen -t ed25519 makes one")
    return found[0]


def sign_manifest(version: str, manifest: str, key: Path) -> tuple[bytes, bytes]:
    """What is signed now of a version with this manifest, and the signature. Raises BenchError where the key cannot be used."""
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = Signature(version=version, manifest=manifest, date=date, key=fingerprint(key))
    content = (json.dumps({"schema": SCHEMA, **asdict(made)}, indent=1) + "\n").encode()
    done = _keygen(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], content)
    if done.returncode or "BEGIN SSH SIGNATURE" not in done.stdout:
        raise BenchError(
            f"{version} is in place and not signed: {_said(done)}",
            f"bench publish --sign {key} signs it",
        )
    return content, done.stdout.encode()


def check_signatures(
    out: Path, manifests: Mapping[str, str], signers: Path | None
) -> Iterator[Finding]:
    """A finding for each version that is signed; with ``signers`` the newest has to be, by one of them.

    ``manifests``: version -> sha256 of its manifest as it is now, oldest first. Raises BenchError where ``signers`` cannot be used.
    """
    if signers is not None and not signers.is_file():
        raise BenchError(
            f"no file {signers}",
            "--signers FILE: a line each, NAME KEYTYPE KEY, as in man ssh-keygen, ALLOWED SIGNERS",
        )
    for i, (version, manifest) in enumerate(manifests.items(), 1):
        what = signature_files(version)[0]
        try:
            signature = read_signature(out, version)
        except DataDamaged as error:
            yield Finding("files", what, DIFFERS, error.message)
            continue
        if signature is None:
            if signers is not None and i == len(manifests):
                yield Finding("files", what, DIFFERS, f"{version} is not signed")
        elif (signature.version, signature.manifest) != (version, manifest):
            yield Finding(
                "files", what, DIFFERS, f"another MANIFEST.json was signed than that of {version}"
            )
        else:
            yield _checked(out, signature, signers)


def _checked(out: Path, signature: Signature, signers: Path | None) -> Finding:
    name, sig_name = signature_files(signature.version)
    content, sig = (out / name).read_bytes(), str(out / sig_name)
    try:
        made = _keygen(["-Y", "check-novalidate", "-n", NAMESPACE, "-s", sig], content)
    except BenchError as error:
        if signers is not None:
            raise
        return Finding("files", name, UNCHECKED, error.message)
    if made.returncode or signature.key not in _KEY.findall(made.stdout + made.stderr):
        return Finding("files", name, DIFFERS, "the signature is not of this text and this key")
    if signers is None:
        return Finding(
            "files",
            name,
            UNCHECKED,
            f"signed on {signature.date} with the key {signature.key}; --signers FILE says whose it is",
        )
    whose = _keygen(["-Y", "find-principals", "-s", sig, "-f", str(signers)])
    for line in whose.stdout.splitlines() if not whose.returncode else ():
        if not _keygen(
            ["-Y", "verify", "-f", str(signers), "-I", line.strip(), "-n", NAMESPACE, "-s", sig],
            content,
        ).returncode:
            return Finding("files", name, AGREES)
    return Finding(
        "files", name, DIFFERS, f"signed with the key {signature.key}, which is none of {signers}"
    )


def _keygen(arguments: Sequence[str], data: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Raises BenchError where ssh-keygen is missing, or waits for ever."""
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments], input=data, capture_output=True, timeout=SECONDS
        )
    except FileNotFoundError:
        raise BenchError(
            "ssh-keygen is not installed here", "it comes with OpenSSH 8.0 or newer"
        ) from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"ssh-keygen did not answer within {SECONDS} s") from None
    texts = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, *texts)


def _said(done: subprocess.CompletedProcess[str]) -> str:
    return (
        " ".join((done.stderr or done.stdout).split())[:200]
        or f"ssh-keygen ended with {done.returncode}"
    )
