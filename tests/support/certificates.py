"""Certificates for tests, made by the openssl command: short-lived, elliptic, for localhost."""

import subprocess
from pathlib import Path

import msgspec


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its key, as PEM files."""

    cert: Path
    key: Path


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make_ca(folder: Path, name: str = "ca") -> Pair:
    """Make a certificate authority in ``folder``."""
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", f"/CN={name}", "-keyout", str(pair.key), "-out", str(pair.cert)),
        *("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"),
    )
    return pair


def make_cert(folder: Path, ca: Pair, name: str, sans: str = "DNS:localhost,IP:127.0.0.1") -> Pair:
    """Make a certificate that ``ca`` signed, with the given subject alternative names."""
    pair = Pair(folder / f"{name}.crt", folder / f"{name}.key")
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={sans}\nbasicConstraints=CA:FALSE\n")
    _openssl(
        *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", f"/CN={name}", "-keyout", str(pair.key), "-out", str(request)),
    )
    _openssl(
        *("x509", "-req", "-in", str(request), "-CA", str(ca.cert), "-CAkey", str(ca.key), "-days", "2"),
        *("-CAcreateserial", "-extfile", str(extensions), "-out", str(pair.cert)),
    )
    return pair
