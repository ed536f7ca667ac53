"""Makes wheels of the package, with the C library in them where it has been built (PEP 517).

The library is the folder named by CGS_WHEEL_LIBRARIES (make wheel: with the libraries it needs),
else the file named by CGS_LIBRARY, else that of the build folder beside this one.  Without any, the
wheel has Python files alone, and the package looks for an installed library.

As a program:  python3 wheel_backend.py FOLDER
"""

import base64
import glob
import hashlib
import io
import os
import re
import sys
import sysconfig
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same files make the same wheel


def _read(*path):
    with open(os.path.join(*path), "rb") as f:
        return f.read()


def _version():
    """Of the C header, or of a source distribution."""
    for path, pattern in ((("..", "include", "cgs", "cgs.h"), rb'#define CGS_VERSION "(.*)"'),
                          (("PKG-INFO",), rb"(?m)^Version: (.*)$")):
        if os.path.exists(os.path.join(HERE, *path)):
            return re.search(pattern, _read(HERE, *path)).group(1).decode()
    raise RuntimeError("neither ../include/cgs/cgs.h nor PKG-INFO says the version")


def _package():
    """Path in the wheel -> bytes."""
    names = glob.glob(os.path.join(HERE, "cgs", "*.py")) + [os.path.join(HERE, "cgs", "py.typed")]
    return {"cgs/" + os.path.basename(p): _read(p) for p in sorted(names)}


def _libraries():
    soname = re.search(rb'SONAME = "(.*)"', _read(HERE, "cgs", "_library.py")).group(1).decode()
    folder = os.environ.get("CGS_WHEEL_LIBRARIES")
    if folder:
        found = {os.path.basename(p): p for p in glob.glob(os.path.join(folder, "*.so*"))}
        if soname not in found:
            raise RuntimeError(f"{folder} has no {soname}")
    else:
        built = sorted(glob.glob(os.path.join(HERE, "..", "build", "libcgs.so.*")))
        one = os.environ.get("CGS_LIBRARY") or (built[0] if built else None)
        found = {soname: one} if one else {}
    return {"cgs/lib/" + name: _read(path) for name, path in sorted(found.items())}


def _metadata():
    return (f"Metadata-Version: 2.1\nName: cgs\nVersion: {_version()}\n"
            "Summary: Latent world models that are easy to plan with: the C library from Python\n"
            "License: MIT\nRequires-Python: >=3.8\n"
            "Provides-Extra: arrays\nRequires-Dist: numpy; extra == 'arrays'\n"
            "Provides-Extra: gymnasium\nRequires-Dist: gymnasium>=1.0; extra == 'gymnasium'\n"
            "Requires-Dist: numpy; extra == 'gymnasium'\n").encode()


def _write(path, files, tag):
    info = f"cgs-{_version()}.dist-info"
    pure = "true" if tag.endswith("-any") else "false"
    files = {**files, f"{info}/METADATA": _metadata(),
             f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: cgs\nRoot-Is-Purelib: {pure}\n"
                               f"Tag: {tag}\n").encode()}
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            wheel.writestr(entry, data)


def _make(folder, files, tag):
    os.makedirs(folder, exist_ok=True)
    name = f"cgs-{_version()}-{tag}.whl"
    _write(os.path.join(folder, name), files, tag)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    libraries = _libraries()
    system = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return _make(wheel_directory, {**_package(), **libraries},
                 "py3-none-" + (system if libraries else "any"))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _make(wheel_directory, {"cgs.pth": (HERE + "\n").encode()}, "py3-none-any")


def build_sdist(sdist_directory, config_settings=None):
    base = f"cgs-{_version()}"
    files = {**_package(), "PKG-INFO": _metadata(),
             **{n: _read(HERE, n) for n in ("pyproject.toml", "wheel_backend.py", "README.md")}}
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{base}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return base + ".tar.gz"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: wheel_backend.py FOLDER")
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
