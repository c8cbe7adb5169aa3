"""Certificates for tests, made by openssl."""

import os
import subprocess


def make(folder, name, host="localhost", days=2):
    """Makes a self-signed certificate for a host; days below 0: an expired one. Returns the paths (certificate, key)."""
    paths = [os.path.join(folder, f"{name}.{kind}") for kind in ("pem", "key", "csr", "ext")]
    certificate, key, request, extension = paths
    kind = "IP" if host[0].isdigit() else "DNS"
    with open(extension, "w", encoding="utf-8") as file:
        file.write(f"subjectAltName={kind}:{host}\nbasicConstraints=CA:TRUE\n")
    for command in (["req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-keyout", key, "-out", request],
                    ["x509", "-req", "-in", request, "-signkey", key, "-days", str(days), "-extfile", extension, "-out", certificate]):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return certificate, key
