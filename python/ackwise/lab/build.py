# SPDX-License-Identifier: MIT
"""Builds the lab's kernel and guest program, and caches them by the hash of all inputs.

    CACHE/source/    tarballs, and which one is in use
    CACHE/tree/      unpacked sources under git: a changed patch touches only the files it modifies
    CACHE/object/    make's output, reused from build to build
    CACHE/kernel/    finished kernels, each in a folder named by its inputs

Unfinished folders have temporary names and are renamed when complete, so an interrupted build
leaves nothing that looks finished.
"""

import errno
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ackwise.errors import InputError, RunError
from ackwise.host import files, needs
from ackwise.host.leftovers import temporary_folder
from ackwise.host.programs import find_tool, tethered
from ackwise.lab.machine import Kernel

PACKAGE = "linux-source-6.12"
TREE_BYTES = 2 * 10**9  # unpacked source and its objects
OBJECT_BYTES = 10**9
KERNELS_KEPT = 16
FULL_BUILD_STEPS = 1800
# Sources that this architecture does not build; Kconfig files and Makefiles stay.
_LEFT_OUT = (
    *(f"arch/{name}" for name in (
        "alpha", "arc", "arm", "arm64", "csky", "hexagon", "loongarch", "m68k", "microblaze",
        "mips", "nios2", "openrisc", "parisc", "powerpc", "riscv", "s390", "sh", "sparc", "xtensa",
    )),
    "drivers/gpu", "drivers/media", "drivers/staging", "drivers/infiniband", "drivers/scsi",
    "drivers/usb", "drivers/net/ethernet", "drivers/net/wireless", "sound",
)  # fmt: skip
_LEFT_OUT_KINDS = ("c", "h", "S", "dts", "dtsi", "dtso")

Say = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Inputs:
    """All inputs of a kernel except its source."""

    stock: bool
    patches: list[Path]
    configs: list[Path]
    prepare: Path | None
    guest: list[Path]
    core: list[Path]
    compiler: str

    def key(self, source: str) -> str:
        """Hash of all inputs, including the source's digest."""
        whole = hashlib.sha256(f"3 {source} {self.stock} {self.compiler}\n".encode())
        prepare = [self.prepare] if self.prepare else []
        for file in (*self.patches, *self.configs, *prepare, *self.guest, *self.core):
            data = file.read_bytes()
            whole.update(f"{file.name} {len(data)}\n".encode() + data)
        return whole.hexdigest()[:16]


def linux_folder() -> Path:
    """The `linux` folder of the checkout; RunError outside a checkout."""
    folder = Path(__file__).resolve().parents[3] / "linux"
    if not (folder / "lab").is_dir():
        raise RunError(
            "lab: requires a checkout of ackwise (its folder linux/), not only the wheel; clone "
            "the repository and run `make build` there"
        )
    return folder


def inputs(stock: bool, extra_configs: Iterable[Path] = ()) -> Inputs:
    """The inputs in this checkout; `stock` leaves out ackwise's patches."""
    folder = linux_folder()
    extra = list(extra_configs)
    for file in extra:
        if not file.is_file():
            raise InputError(f"--config: {file}: does not exist; give a file of CONFIG_ lines")
    first = folder / "config" / "lab.config"
    others = [] if stock else sorted((folder / "config").glob("*.config"))
    own = [] if stock else sorted((folder / "patches" / "6.12").glob("*.patch"))
    prepare = folder / "prepare"
    core = folder.parent / "core"
    with_core = not stock and prepare.is_file()
    return Inputs(
        stock or not own,
        own + sorted((folder / "patches" / "lab").glob("*.patch")),
        [first, *(f for f in others if f != first), *extra],
        prepare if with_core else None,
        sorted((folder / "lab").glob("*.[ch]")),
        [core / "policies", *sorted(f for f in core.rglob("*") if f.suffix in (".c", ".h", ".def"))]
        if with_core
        else [],
        _compiler(),
    )


def _compiler() -> str:
    gcc = find_tool("gcc")
    if gcc is None:
        return "none"
    done = subprocess.run([gcc, "-dumpfullversion"], capture_output=True, text=True, check=False)
    return f"gcc {done.stdout.strip()} {platform.machine()}"


def _need(who: str, *scopes: str) -> None:
    lacking = needs.complaint(*scopes)
    if lacking:
        raise RunError(f"{who}: {lacking}")


def _check_tools() -> None:
    if platform.machine() != "x86_64":
        raise RunError(f"lab: {platform.machine()} is not supported; use an x86-64 host")
    _need("lab build", "lab-build")


def _check_space(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < wanted:
        raise RunError(
            f"lab build: {folder}: {free / 1e9:.1f} GB free, {wanted / 1e9:.0f} GB needed; "
            "free some space, or choose another folder with --cache"
        )


@contextmanager
def _locked(cache: Path, on_wait: Callable[[str], None]) -> Iterator[None]:
    """One build at a time. The kernel releases the lock when the process ends."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("a+") as lock:
        warned = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not warned:
                    lock.seek(0)
                    owner = lock.read(20).strip() or "unknown"
                    on_wait(f"waiting for another build (process {owner}) to finish")
                    warned = True
                time.sleep(0.5)
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def _sweep(cache: Path) -> None:
    """Removes leftovers of interrupted builds; called with the lock held."""
    for folder in cache.glob("*/.tmp-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prune(cache: Path) -> None:
    """Keeps the most recently used kernels; a run has its own hard link to its kernel."""
    made = sorted((cache / "kernel").glob("*/linux"), key=lambda f: f.parent.stat().st_mtime)
    for old in made[:-KERNELS_KEPT]:
        shutil.rmtree(old.parent, ignore_errors=True)


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """A folder that becomes `target` only when the block succeeds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".tmp-", dir=target.parent))
    try:
        yield part
        part.chmod(0o755)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _no_space(problem: OSError, cache: Path) -> RunError:
    if problem.errno == errno.ENOSPC:
        return RunError(
            f"lab build: {cache}: the disk is full; free some space, or choose another folder with "
            "--cache (the next build continues from here)"
        )
    return RunError(f"lab build: {problem.filename or cache}: {problem.strerror or problem}")


# --- source ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """The kernel's source: a tarball or a folder, and the hash of its content."""

    path: Path
    digest: str


def _digest_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_folder(folder: Path) -> str:
    whole = hashlib.sha256()
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and ".git" not in p.parts):
        whole.update(f"{file.relative_to(folder)} {_digest_file(file)}\n".encode())
    return whole.hexdigest()


def given_source(path: Path) -> Source:
    """The source that --source names. Raises InputError if it is not a kernel source."""
    if path.is_dir():
        if not (path / "arch/um/Makefile").is_file():
            raise InputError(
                f"--source: {path}: not a kernel source (no arch/um/Makefile); give its top folder"
            )
        return Source(path, _digest_folder(path))
    if not path.is_file():
        raise InputError(f"--source: {path}: does not exist; give a tarball or a folder")
    if not tarfile.is_tarfile(path):
        raise InputError(f"--source: {path}: is not a tar archive; give a tarball of Linux 6.12")
    return Source(path, _digest_file(path))


def used_source(cache: Path) -> Source | None:
    """The source of the last build, if it is still there."""
    try:
        noted = json.loads((cache / "source" / "used.json").read_text(encoding="utf-8"))
        return Source(Path(noted["path"]), noted["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note_source(cache: Path, source: Source) -> None:
    (cache / "source").mkdir(parents=True, exist_ok=True)
    noted = {"path": str(source.path.resolve()), "digest": source.digest}
    files.write_whole(str(cache / "source" / "used.json"), (json.dumps(noted) + "\n").encode())


def _apt_says(done: "subprocess.CompletedProcess[str]") -> str:
    """The first error that apt names, whole: later ones follow from it."""
    said = (done.stderr or done.stdout).splitlines()
    errors = (line.partition(":")[2] for line in said if line.startswith(("E:", "Err:")))
    return next(errors, "").strip() or textwrap.shorten(" ".join(said), 300)


def fetch(cache: Path, say: Say) -> Source:
    """Downloads the source by apt into the cache. Raises RunError if apt does not have it."""
    kept = sorted((cache / "source").glob("linux-source-*.tar.xz"))
    if kept:
        return Source(kept[-1], _digest_file(kept[-1]))
    remedy = "give a tarball with --source"
    if find_tool("apt-get") is None or find_tool("dpkg-deb") is None:
        raise RunError(f"lab build: apt is not installed; {remedy}")
    say(f"fetching {PACKAGE}", 0, 0)
    _check_space(cache, TREE_BYTES)
    with _unfinished(cache / "source" / f"{PACKAGE}.deb") as part:
        done = subprocess.run(
            ["apt-get", "download", "-q", PACKAGE], cwd=part, capture_output=True, text=True
        )
        found = list(part.glob("*.deb"))
        if done.returncode or not found:
            raise RunError(
                f"lab build: `apt-get download {PACKAGE}` failed: {_apt_says(done)}; {remedy}"
            )
        version = found[0].name.split("_")[1].split("-")[0]
        target = cache / "source" / f"linux-source-{version}.tar.xz"
        whole = part / "source.tar.xz"
        with (
            whole.open("wb") as out,
            subprocess.Popen(
                ["dpkg-deb", "--fsys-tarfile", str(found[0])], stdout=subprocess.PIPE
            ) as unpack,
        ):
            member = f"./usr/src/{PACKAGE}.tar.xz"
            taken = subprocess.run(
                ["tar", "x", "--to-stdout", member], stdin=unpack.stdout, stdout=out
            )
        if taken.returncode or not whole.stat().st_size:
            raise RunError(f"lab build: {found[0].name} does not contain {member}; {remedy}")
        whole.rename(target)
        found[0].unlink()
    shutil.rmtree(cache / "source" / f"{PACKAGE}.deb", ignore_errors=True)
    return Source(target, _digest_file(target))


# --- tree ------------------------------------------------------------------------------------

_GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "lab",
    "GIT_AUTHOR_EMAIL": "lab@localhost",
    "GIT_COMMITTER_NAME": "lab",
    "GIT_COMMITTER_EMAIL": "lab@localhost",
    "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
}


# The version string seeds the guest's random numbers: it must not depend on time, host or user.
_MAKE_ENVIRONMENT = {
    "KBUILD_BUILD_TIMESTAMP": "2001-09-09 01:46:40",
    "KBUILD_BUILD_VERSION": "1",
    "KBUILD_BUILD_USER": "ackwise",
    "KBUILD_BUILD_HOST": "lab",
    "LOCALVERSION": "",
    "LC_ALL": "C",
}


def _git(tree: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-c", "core.compression=0", "-c", "gc.auto=0", *words],
        cwd=tree,
        env={**os.environ, **_GIT_ENVIRONMENT, **more},
        capture_output=True,
        text=True,
    )


def _git_or_fail(tree: Path, *words: str, **more: str) -> str:
    done = _git(tree, *words, **more)
    if done.returncode:
        if "No space left" in done.stderr:
            raise _no_space(OSError(errno.ENOSPC, ""), tree)
        raise RunError(f"lab build: git {words[0]}: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout.strip()


def _unlock(tree: Path) -> None:
    """Removes the locks of a killed git: the cache's lock excludes any other user of the tree."""
    folder = tree / ".git"
    for lock in (*folder.glob("*.lock"), *(folder / "refs").rglob("*.lock")):
        lock.unlink()


def _unpack(source: Source, into: Path) -> None:
    if source.path.is_dir():
        shutil.copytree(
            source.path, into, dirs_exist_ok=True, symlinks=True,
            ignore=shutil.ignore_patterns(".git", "*.o", "*.cmd"),
        )  # fmt: skip
        return
    skipped = [f"--exclude=*/{folder}/*.{kind}" for folder in _LEFT_OUT for kind in _LEFT_OUT_KINDS]
    done = subprocess.run(
        ["tar", "x", "-f", str(source.path), "-C", str(into), "--strip-components=1", *skipped],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        if "No space left" in done.stderr:
            raise OSError(errno.ENOSPC, "")
        message = " ".join(done.stderr.split())[:200]
        raise RunError(
            f"lab build: {source.path}: cannot be unpacked: {message}; remove it and try again"
        )
    if not (into / "arch/um/Makefile").is_file():
        raise RunError(
            f"lab build: {source.path}: does not contain the Linux source; give another --source"
        )


def _tree(cache: Path, source: Source, variant: str, say: Say) -> Path:
    """The unpacked source as a git tree whose first commit, `base`, is unmodified."""
    target = cache / "tree" / f"{source.digest[:12]}-{variant}"
    if target.is_dir():
        return target
    _check_space(cache, TREE_BYTES)
    with _unfinished(target) as part:
        sibling = next((cache / "tree").glob(f"{source.digest[:12]}-*"), None)
        if sibling:
            say("copying the unpacked source", 0, 0)
            shutil.copytree(sibling, part, dirs_exist_ok=True, symlinks=True)
            _unlock(part)
            _git_or_fail(part, "reset", "-q", "--hard", "base")
            _git_or_fail(part, "clean", "-fdxq")
        else:
            say("unpacking the source", 0, 0)
            _unpack(source, part)
            _git_or_fail(part, "init", "-q")
            _git_or_fail(part, "add", "-Af", ".")
            _git_or_fail(part, "commit", "-q", "-m", "base")
            _git_or_fail(part, "tag", "base")
    return target


def _patch(tree: Path, made: Inputs, say: Say) -> None:
    """Updates the tree to base + patches + prepare; unchanged files keep their timestamps."""
    say("applying patches", 0, 0)
    index = tree / ".git" / "lab-index"
    index.unlink(missing_ok=True)
    _unlock(tree)
    where = {"GIT_INDEX_FILE": str(index)}
    _git_or_fail(tree, "read-tree", "base", **where)
    for patch in made.patches:
        done = _git(tree, "apply", "--cached", "--whitespace=nowarn", str(patch), **where)
        if done.returncode:
            first = next((x for x in done.stderr.splitlines() if "error:" in x), done.stderr)
            raise RunError(
                f"lab build: {patch.name} does not apply: {first.removeprefix('error: ').strip()}; "
                "rebase the patch onto this source"
            )
    new = _git_or_fail(tree, "write-tree", **where)
    commit = _git_or_fail(tree, "commit-tree", new, "-p", "base", "-m", "patched")
    before = {path: (_digest_file(path), path.stat()) for path in _touched(tree)}
    _git_or_fail(tree, "reset", "-q", "--hard", commit)
    _git_or_fail(tree, "clean", "-fdxq")
    if made.prepare:
        done = subprocess.run([str(made.prepare), str(tree)], capture_output=True, text=True)
        if done.returncode:
            message = " ".join((done.stderr or done.stdout).split())[-300:]
            raise RunError(f"lab build: linux/prepare failed: {message}")
    for path in _touched(tree):
        old = before.get(path)
        if old and old[0] == _digest_file(path):
            os.utime(path, ns=(old[1].st_atime_ns, old[1].st_mtime_ns))


def _touched(tree: Path) -> list[Path]:
    """Files that differ from the tree's commit or are not in it."""
    done = _git(tree, "status", "--porcelain", "-z", "--no-renames", "-uall", "--ignored=matching")
    names = [entry[3:] for entry in done.stdout.split("\0") if len(entry) > 3]
    return [tree / name for name in names if (tree / name).is_file()]


# --- configuration and make ------------------------------------------------------------------


def _wanted_options(files: list[Path]) -> dict[str, tuple[str, Path]]:
    """Option -> (value, file that sets it); the last file wins."""
    wanted: dict[str, tuple[str, Path]] = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            match = re.fullmatch(r"(CONFIG_\w+)=(.+?)\s*|# (CONFIG_\w+) is not set", line)
            if match:
                wanted[match[1] or match[3]] = (match[2] or "n", file)
    return wanted


def _configure(tree: Path, objects: Path, made: Inputs, say: Say) -> None:
    say("configuring", 0, 0)
    make = ["make", "-s", "ARCH=um", f"O={objects}"]
    _make_or_fail([*make, "defconfig"], tree)
    wanted = _wanted_options(made.configs)
    with (objects / ".config").open("a", encoding="utf-8") as config:
        for option, (value, _) in wanted.items():
            config.write(f"{option}={value}\n")
    _make_or_fail([*make, "olddefconfig"], tree)
    text = (objects / ".config").read_text(encoding="utf-8")
    got = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))
    for option, (value, file) in wanted.items():
        if got.get(option, "n") != value:
            raise RunError(
                f"lab build: {file.name}: {option}={value}: became {got.get(option, 'n')}; "
                "add the options it depends on, or remove it"
            )


def _make_or_fail(words: list[str], tree: Path) -> None:
    environment = {**os.environ, **_MAKE_ENVIRONMENT}
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise _make_failed(done.stdout + done.stderr, words[-1])


def _make_failed(output: str, target: str, log: Path | None = None) -> RunError:
    if "No space left on device" in output:
        return _no_space(OSError(errno.ENOSPC, ""), Path())
    lines = [x for x in output.splitlines() if re.search(r"error|Error|undefined|not found", x)]
    shown = "\n".join(f"  | {line}" for line in (lines or output.splitlines())[:8])
    kept = f" (full log: {log})" if log else ""
    return RunError(f"lab build: make {target} failed{kept}:\n{shown}")


def _compile(tree: Path, objects: Path, log: Path, jobs: int, say: Say) -> None:
    expected = FULL_BUILD_STEPS if not (objects / "vmlinux").exists() else 0
    words = tethered(["make", f"-j{jobs}", "ARCH=um", f"O={objects}", "linux"], end_signal="TERM")
    steps = 0
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            words,
            cwd=tree,
            env={**os.environ, **_MAKE_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        assert process.stdout
        try:
            for line in process.stdout:
                out.write(line)
                if re.match(r"\s+[A-Z]{2,} ", line):
                    steps += 1
                    say("compiling", steps, max(expected, steps))
            process.wait()
        except BaseException:
            # on SIGTERM make removes the files it was writing
            os.killpg(process.pid, 15)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
            raise
    if process.returncode:
        raise _make_failed(log.read_text(encoding="utf-8", errors="replace"), "linux", log)


def _compile_guest(tree: Path, made: Inputs, into: Path) -> None:
    with temporary_folder() as headers:
        for name in ("tcp.h", "inet_diag.h"):
            shutil.copy(tree / "include/uapi/linux" / name, headers / f"kernel-{name}")
        sources = [str(f) for f in made.guest if f.suffix == ".c"]
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-static", f"-I{headers}",
             *sources, "-o", str(into)],
            capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode:
        raise _make_failed(done.stderr, into.name)


@contextmanager
def _object_folder(cache: Path, name: str) -> Iterator[Path]:
    """make's output folder; emptied if a build was killed, which may leave broken objects."""
    folder = cache / "object" / name
    mark = folder / ".building"
    if mark.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    try:
        yield folder
    finally:
        mark.unlink(missing_ok=True)


def finished(cache: Path, made: Inputs, source: Source) -> Kernel | None:
    """The kernel of these inputs, if it has been built."""
    key = made.key(source.digest)
    folder = cache / "kernel" / key
    if not (folder / "linux").is_file():
        return None
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return Kernel(
        folder / "linux", folder / "lab-guest", about["label"], key, about["has_policies"]
    )


def find(cache: Path, stock: bool, extra_configs: Iterable[Path] = ()) -> Kernel:
    """The kernel for this checkout; RunError with the remedy if it has not been built."""
    made = inputs(stock, extra_configs)
    source = used_source(cache)
    kernel = finished(cache, made, source) if source else None
    if kernel is None:
        option = " --stock" if stock else ""
        older = any((cache / "kernel").glob("*/linux"))
        why = "its inputs have changed" if older else "none was ever built"
        raise RunError(f"lab: no kernel is built ({why}); run `ackwise lab build{option}`")
    _need("lab", "lab-run")
    with suppress(OSError):  # a cache owned by another user
        os.utime(kernel.linux.parent)
    return kernel


def build(
    cache: Path,
    *,
    stock: bool = False,
    source: Path | None = None,
    extra_configs: Iterable[Path] = (),
    jobs: int | None = None,
    say: Say = lambda _what, _done, _all: None,
    warn: Callable[[str], None] = lambda _text: None,
) -> Kernel:
    """The kernel of this checkout, built unless the cache has it.

    Raises InputError for an invalid --source, RunError if a tool is missing or a step fails.
    """
    _check_tools()
    made = inputs(stock, extra_configs)
    given = given_source(source) if source else None
    try:
        with _locked(cache, warn):
            _sweep(cache)
            chosen = given or fetch(cache, say)
            _note_source(cache, chosen)
            kernel = finished(cache, made, chosen)
            if kernel:
                return kernel
            return _build(cache, made, chosen, jobs or os.cpu_count() or 1, say)
    except OSError as problem:
        raise _no_space(problem, cache) from None


def _build(cache: Path, made: Inputs, source: Source, jobs: int, say: Say) -> Kernel:
    variant = "stock" if made.stock else "patched"
    tree = _tree(cache, source, variant, say)
    _patch(tree, made, say)
    # one folder per set of options, so that switching between them avoids full builds
    options = hashlib.sha256(" ".join(f.name for f in made.configs).encode()).hexdigest()[:8]
    _check_space(cache, OBJECT_BYTES)
    key = made.key(source.digest)
    with _object_folder(cache, f"{source.digest[:12]}-{variant}-{options}") as objects:
        _configure(tree, objects, made, say)
        _compile(tree, objects, cache / "build.log", jobs, say)
        with _unfinished(cache / "kernel" / key) as part:
            shutil.copy2(objects / "linux", part / "linux")
            shutil.copy2(objects / ".config", part / "config")
            _compile_guest(tree, made, part / "lab-guest")
            release = (objects / "include/config/kernel.release").read_text().strip()
            about = {
                "label": f"Linux {release}, {variant}",
                "has_policies": not made.stock,
                "source": source.digest,
                "patches": [p.name for p in made.patches],
                "configs": [c.name for c in made.configs],
                "compiler": made.compiler,
            }
            (part / "about.json").write_text(json.dumps(about, indent=2) + "\n")
            if made.key(source.digest) != key:
                raise RunError(
                    "lab build: patches or sources changed during the build; run it again"
                )
    _prune(cache)
    found = finished(cache, made, source)
    assert found
    return found
