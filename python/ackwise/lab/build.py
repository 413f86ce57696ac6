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
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import tarfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ackwise.bounded import parse_json
from ackwise.errors import InputError, RunError
from ackwise.host import environment, files, folders, needs, programs
from ackwise.host.leftovers import owned_name, temporary_folder
from ackwise.host.programs import find_tool
from ackwise.lab.machine import Kernel
from ackwise.lab.target import UML, Target

PACKAGE = "linux-source-6.12"
TREE_BYTES = 2 * 10**9  # unpacked source and objects
OBJECT_BYTES = 10**9
BUILD_PATH = "build"  # in CACHE/tree: path of a tree while it is built
KERNELS_KEPT = 16
FULL_BUILD_STEPS = 1800
# Sources that no target compiles, except those of its own architecture; Kconfig files and Makefiles
# stay.
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
    core: str  # the patch that adds the core to the kernel; "": none
    guest: list[Path]
    confine: list[Path]
    compiler: str
    target: Target = UML

    @property
    def variant(self) -> str:
        """Name of the variant in folder names."""
        return "stock" if self.stock else "patched"

    def key(self, source: str) -> str:
        """Hash of all inputs, including the source's digest."""
        target = "" if self.target is UML else f" {self.target}"
        whole = hashlib.sha256(f"4 {source} {self.stock} {self.compiler}{target}\n".encode())
        files_of = (*self.patches, *self.configs, *self.guest, *self.confine)
        texts = [(file.name, file.read_bytes()) for file in files_of]
        core = [("core", self.core.encode())] if self.core else []
        for name, data in (*texts, *core):
            whole.update(f"{name} {len(data)}\n".encode() + data)
        return whole.hexdigest()[:16]


def linux_folder() -> Path:
    """The folder `linux`: the checkout's, otherwise the copy that a package holds."""
    here = Path(__file__).resolve()
    for folder in (here.parents[3] / "linux", here.with_name("sources") / "linux"):
        if (folder / "lab").is_dir():
            return folder
    raise RunError(
        "lab: the sources of its kernel are missing; reinstall ackwise, or `make build` in a "
        "checkout"
    )


def inputs(stock: bool, extra_configs: Iterable[Path] = (), target: Target = UML) -> Inputs:
    """The inputs of this version; `stock` leaves out ackwise's patches."""
    folder = linux_folder()
    extra = list(extra_configs)
    for file in extra:
        if not file.is_file():
            raise InputError(f"--config: {file}: does not exist; give a file of CONFIG_ lines")
    configs = [*target.configs, *(() if stock else target.own_configs)]
    own = [] if stock else sorted((folder / "patches" / "6.12").glob("*.patch"))
    labs = sorted((folder / "patches" / "lab").glob("*.patch"))
    return Inputs(
        stock or not own,
        own + labs,
        [*(folder / "config" / name for name in configs), *extra],
        "" if stock else _core(folder / "series"),
        sorted((folder / "lab").glob("*.[ch]")),
        sorted((folder / "lab" / "confine").glob("*.c")),
        _compiler(target),
        target,
    )


def _core(series: Path) -> str:
    """The patch of core/; "" without one."""
    if not series.is_file():
        return ""
    done = programs.run([str(series), "core"])
    if done.returncode:
        raise RunError(f"lab build: linux/series failed: {programs.said(done)}")
    return done.stdout


def _compiler(target: Target) -> str:
    gcc = find_tool(target.compiler)
    if gcc is None:
        return "none"
    version = programs.run([gcc, "-dumpfullversion"]).stdout.strip()
    return f"{target.compiler} {version} {platform.machine()}"


def _need(who: str, *scopes: str) -> None:
    lacking = needs.complaint(*scopes)
    if lacking:
        raise RunError(f"{who}: {lacking}")


def _command(target: Target) -> str:
    """The command that builds kernels for a target."""
    return "device build" if target.is_device else "lab build"


def _check_tools(target: Target = UML) -> None:
    if platform.machine() != "x86_64":
        raise RunError(f"lab: {platform.machine()} is not supported; use an x86-64 host")
    _need(_command(target), *dict.fromkeys((UML.scope, target.scope)))


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
    files.make_folder(cache)

    def waits(holder: str) -> None:
        on_wait(f"waiting for another build (process {holder}) to finish")

    with files.lock(cache / "lock", on_wait=waits):
        yield


def _sweep(cache: Path) -> None:
    """Cleans up after interrupted builds; called with the lock held."""
    for folder in cache.glob("*/.tmp-*"):
        folders.remove_tree(folder)
    tree = cache / "tree" / BUILD_PATH
    if tree.is_dir():
        folders.rename(tree, tree.parent / (tree / ".git" / "lab-name").read_text(encoding="ascii"))


def _prune(cache: Path) -> None:
    """Removes all but the most recently used kernels; a running guest has its kernel open."""
    made = sorted((cache / "kernel").glob("*/linux"), key=lambda f: f.parent.stat().st_mtime)
    for old in made[:-KERNELS_KEPT]:
        folders.remove_tree(old.parent)


@contextmanager
def _unfinished(target: Path) -> Iterator[Path]:
    """A folder that becomes `target` when the block has succeeded and its files are on disk."""
    folders.make(target.parent)
    part = target.with_name(f".tmp-{owned_name()}")
    folders.make(part, 0o700)
    try:
        yield part
        part.chmod(0o755)
        os.sync()
        folders.rename(part, target)
        with folders.entered(target.parent) as above:
            os.fsync(above)
    finally:
        if part.exists():
            folders.remove_tree(part)


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
    """The source given with --source. Raises InputError if it is not a kernel source."""
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
        noted = parse_json((cache / "source" / "used.json").read_bytes())
        return Source(Path(noted["path"]), noted["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note_source(cache: Path, source: Source) -> None:
    folders.make(cache / "source")
    noted = {"path": str(source.path.resolve()), "digest": source.digest}
    files.write_whole(str(cache / "source" / "used.json"), (json.dumps(noted) + "\n").encode())


def _apt_says(done: programs.Finished) -> str:
    """The first error of apt, complete: later ones are its consequences."""
    said = (done.stderr or done.stdout).splitlines()
    errors = (line.partition(":")[2] for line in said if line.startswith(("E:", "Err:")))
    return next(errors, "").strip() or textwrap.shorten(" ".join(said), 300)


def fetch(cache: Path, say: Say) -> Source:
    """Downloads the source with apt into the cache. Raises RunError if apt does not have it."""
    # linux/check may have put other series there
    kept = sorted((cache / "source").glob(f"{PACKAGE}.*.tar.xz"))
    if kept:
        return Source(kept[-1], _digest_file(kept[-1]))
    remedy = "give a tarball with --source"
    if find_tool("apt-get") is None or find_tool("dpkg-deb") is None:
        raise RunError(f"lab build: apt is not installed; {remedy}")
    say(f"fetching {PACKAGE}", 0, 0)
    _check_space(cache, TREE_BYTES)
    with _unfinished(cache / "source" / f"{PACKAGE}.deb") as part:
        # Without capabilities, root cannot switch to the user that apt downloads as.
        words = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", PACKAGE]
        done = programs.run(words, cwd=part)
        found = list(part.glob("*.deb"))
        if done.returncode or not found:
            raise RunError(
                f"lab build: `apt-get download {PACKAGE}` failed: {_apt_says(done)}; {remedy}"
            )
        version = found[0].name.split("_")[1].split("-")[0]
        target = cache / "source" / f"linux-source-{version}.tar.xz"
        whole = part / "source.tar.xz"
        member = f"./usr/src/{PACKAGE}.tar.xz"
        with (
            files.writing(str(whole)) as out,
            programs.started(["dpkg-deb", "--fsys-tarfile", str(found[0])]) as unpack,
        ):
            taken = programs.run(
                ["tar", "x", "--to-stdout", member], stdin=unpack.stdout, stdout=out
            )
        if taken.returncode or not whole.stat().st_size:
            raise RunError(f"lab build: {found[0].name} does not contain {member}; {remedy}")
        folders.rename(whole, target)
        folders.remove_file(found[0])
    folders.remove_tree(cache / "source" / f"{PACKAGE}.deb")
    return Source(target, _digest_file(target))


# --- tree ------------------------------------------------------------------------------------

# The repository is given explicitly, so that git finds no other one, here or in a parent folder.
_GIT = (
    "git", "--git-dir=.git", "--work-tree=.", "-c", "core.compression=0", "-c", "gc.auto=0"
)  # fmt: skip
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


def _git(tree: Path, *words: str, given: str | None = None, **more: str) -> programs.Finished:
    variables = environment.passed_on(**_GIT_ENVIRONMENT, **more)
    return programs.run([*_GIT, *words], given=given, cwd=tree, environment=variables)


def _git_or_fail(tree: Path, *words: str, **more: str) -> str:
    done = _git(tree, *words, **more)
    if done.returncode:
        if "No space left" in done.stderr:
            raise _no_space(OSError(errno.ENOSPC, ""), tree)
        raise RunError(f"lab build: git {words[0]}: {' '.join(done.stderr.split())[-300:]}")
    return done.stdout.strip()


def _unlock(tree: Path) -> None:
    """Removes the locks of a killed git: the cache's lock excludes other users of the tree."""
    folder = tree / ".git"
    for lock in (*folder.glob("*.lock"), *(folder / "refs").rglob("*.lock")):
        folders.remove_file(lock)


def _unpack(source: Source, into: Path, target: Target = UML) -> None:
    if source.path.is_dir():
        folders.copy_tree(source.path, into, (".git", "*.o", "*.cmd"))
        return
    left_out = [folder for folder in _LEFT_OUT if folder != f"arch/{target.arch}"]
    skipped = [f"--exclude=*/{folder}/*.{kind}" for folder in left_out for kind in _LEFT_OUT_KINDS]
    unpack = ["tar", "x", "--no-same-owner", "--strip-components=1", *skipped]
    done = programs.run([*unpack, "-f", str(source.path), "-C", str(into)])
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


def _tree(cache: Path, source: Source, variant: str, say: Say, target: Target = UML) -> Path:
    """The unpacked source as a git tree whose first commit, `base`, is unmodified."""
    begin = f"{target.tree}{source.digest[:12]}"
    tree = cache / "tree" / f"{begin}-{variant}"
    if tree.is_dir():
        return tree
    _check_space(cache, TREE_BYTES)
    with _unfinished(tree) as part:
        sibling = next((cache / "tree").glob(f"{begin}-*"), None)
        if sibling:
            say("copying the unpacked source", 0, 0)
            folders.copy_tree(sibling, part)
            _unlock(part)
            _git(part, "update-index", "-q", "--refresh")  # otherwise reset rewrites every file
            _git_or_fail(part, "reset", "-q", "--hard", "base")
            _git_or_fail(part, "clean", "-fdxq")
        else:
            say("unpacking the source", 0, 0)
            _unpack(source, part, target)
            _git_or_fail(part, "init", "-q")
            _git_or_fail(part, "add", "-Af", ".")
            _git_or_fail(part, "commit", "-q", "-m", "base")
            _git_or_fail(part, "tag", "base")
    return tree


def _patch(tree: Path, made: Inputs, say: Say) -> None:
    """Updates the tree to base + core + patches; unchanged files keep their timestamps."""
    say("applying patches", 0, 0)
    index = tree / ".git" / "lab-index"
    folders.remove_file(index)
    _unlock(tree)
    where = {"GIT_INDEX_FILE": str(index)}
    _git_or_fail(tree, "read-tree", "base", **where)
    texts = [(patch.name, patch.read_text(encoding="utf-8")) for patch in made.patches]
    if made.core:
        texts.insert(0, ("the patch of core/", made.core))
    for name, text in texts:
        done = _git(tree, "apply", "--cached", "--whitespace=nowarn", "-", given=text, **where)
        if done.returncode:
            first = next((x for x in done.stderr.splitlines() if "error:" in x), done.stderr)
            raise RunError(
                f"lab build: {name} does not apply: {first.removeprefix('error: ').strip()}; "
                "rebase the patch onto this source"
            )
    new = _git_or_fail(tree, "write-tree", **where)
    commit = _git_or_fail(tree, "commit-tree", new, "-p", "base", "-m", "patched")
    # Otherwise reset rewrites files with another time.
    _git(tree, "update-index", "-q", "--refresh")
    _git_or_fail(tree, "reset", "-q", "--hard", commit)
    _git_or_fail(tree, "clean", "-fdxq")


def _changed(tree: Path) -> list[Path]:
    """Files of the tree's commit that the patches change or add."""
    names = _git_or_fail(tree, "diff", "--name-only", "--no-renames", "-z", "base", "HEAD")
    return [tree / name for name in names.split("\0") if (tree / name).is_file()]


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
    make = ["make", "-s", *made.target.make, f"O={objects}"]
    _make_or_fail([*make, made.target.base], tree)
    wanted = _wanted_options(made.configs)
    asked = "".join(f"{option}={value}\n" for option, (value, _) in wanted.items())
    config = objects / ".config"
    files.write_whole(str(config), config.read_bytes() + asked.encode())
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
    done = programs.run(words, cwd=tree, environment=environment.passed_on(**_MAKE_ENVIRONMENT))
    if done.returncode:
        raise _make_failed(done.stdout + done.stderr, words[-1])


def _make_failed(output: str, target: str, log: Path | None = None) -> RunError:
    if "No space left on device" in output:
        return _no_space(OSError(errno.ENOSPC, ""), Path())
    lines = [x for x in output.splitlines() if re.search(r"error|Error|undefined|not found", x)]
    shown = "\n".join(f"  | {line}" for line in (lines or output.splitlines())[:8])
    kept = f" (full log: {log})" if log else ""
    return RunError(f"lab build: make {target} failed{kept}:\n{shown}")


def _compile(tree: Path, objects: Path, target: Target, log: Path, jobs: int, say: Say) -> None:
    expected = FULL_BUILD_STEPS if not (objects / "vmlinux").exists() else 0
    steps = 0
    said: list[str] = []
    try:
        with programs.started(
            ["make", f"-j{jobs}", *target.make, f"O={objects}", target.goal],
            stderr=programs.SAME_AS_STDOUT,
            cwd=tree,
            environment=environment.passed_on(**_MAKE_ENVIRONMENT),
            new_session=True,
            end_signal="TERM",
        ) as process:
            assert process.stdout
            try:
                for line in process.stdout:
                    said.append(line)
                    if re.match(r"\s+[A-Z]{2,} ", line):
                        steps += 1
                        say("compiling", steps, max(expected, steps))
                process.wait()
            except BaseException:
                # on SIGTERM make removes the files it was writing
                os.killpg(process.pid, signal.SIGTERM)
                programs.stop(process)
                raise
    finally:
        files.write_whole(str(log), "".join(said).encode())
    if process.returncode:
        raise _make_failed("".join(said), target.goal, log)


def _compile_confine(made: Inputs, into: Path) -> None:
    _gcc("gcc", "-O2", *map(str, made.confine), into=into)


def _compile_guest(tree: Path, made: Inputs, into: Path) -> None:
    with temporary_folder() as headers:
        for name in ("tcp.h", "inet_diag.h"):
            folders.copy_file(tree / "include/uapi/linux" / name, headers / f"kernel-{name}")
        sources = [str(f) for f in made.guest if f.suffix == ".c"]
        _gcc(made.target.compiler, "-O2", f"-I{headers}", *sources, into=into)


def _gcc(compiler: str, *words: str, into: Path) -> None:
    done = programs.run(
        [compiler, "-std=gnu11", "-Wall", "-Wextra", "-static", *words, "-o", str(into)]
    )
    if done.returncode:
        raise _make_failed(done.stderr, into.name)


@contextmanager
def _at_build_path(tree: Path) -> Iterator[Path]:
    """The tree, moved to a path that all trees have while they are built: objects can be reused
    only if the compiler's command line, which contains the path, is the same."""
    place = tree.parent / BUILD_PATH
    files.write_whole(str(tree / ".git" / "lab-name"), tree.name.encode())
    folders.rename(tree, place)
    try:
        yield place
    finally:
        folders.rename(place, tree)


@contextmanager
def _object_folder(cache: Path, name: str) -> Iterator[Path]:
    """make's output folder; emptied if a build was killed, which may leave broken objects."""
    folder = cache / "object" / name
    mark = folder / ".building"
    if mark.exists():
        folders.remove_tree(folder)
    folders.make(folder)
    files.write_whole(str(mark), b"")
    try:
        yield folder
    finally:
        folders.remove_file(mark)


def _reuse(folder: Path, stock: str, objects: Path, tree: Path) -> None:
    """Fills an empty object folder with the objects of the unpatched kernel, if there are any."""
    whole = (
        found
        for found in folder.glob(stock)
        if (found / "vmlinux").exists() and not (found / ".building").exists()
    )
    built = next(whole, None)
    if built is None or (objects / "Makefile").exists():
        return
    folders.copy_tree(built, objects)
    # files changed by the patches may be older than those objects, which were built without the
    # patches
    for file in _changed(tree):
        os.utime(file)


class DamagedError(RunError):
    """A kernel in the cache differs from what was built."""


def finished(cache: Path, made: Inputs, source: Source) -> Kernel | None:
    """The kernel for these inputs, if it has been built. DamagedError if one of its files has
    changed since, as after a power cut or on a full disk."""
    key = made.key(source.digest)
    folder = cache / "kernel" / key
    if not folder.is_dir():
        return None
    try:
        about = parse_json((folder / "about.json").read_bytes())
        label, has_policies, sizes = about["label"], about["has_policies"], about["bytes"]
        for name, size in sizes.items():
            found = (folder / name).stat().st_size
            if found != size:
                raise DamagedError(f"{folder / name} has {found} bytes instead of {size}")
        for file in (folder, *folder.iterdir()):
            folders.ours(file, "--cache")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DamagedError(f"{folder} cannot be read: {problem}") from None
    return Kernel(folder / "linux", folder / "lab-guest", label, key, has_policies)


def find(
    cache: Path, stock: bool, extra_configs: Iterable[Path] = (), target: Target = UML
) -> Kernel:
    """The kernel for this checkout; RunError with the remedy if it has not been built."""
    folders.ours(cache, "--cache")
    made = inputs(stock, extra_configs, target)
    source = used_source(cache)
    option = f" --device {target.name}" if target.is_device else ""
    option += " --stock" if stock else ""
    command = f"ackwise {_command(target)}{option}"
    try:
        kernel = finished(cache, made, source) if source else None
    except DamagedError as problem:
        raise RunError(f"lab: {problem}; run `{command}`") from None
    if kernel is None:
        older = any((cache / "kernel").glob("*/linux"))
        why = "its inputs have changed" if older else "none was ever built"
        raise RunError(f"lab: no kernel is built ({why}); run `{command}`")
    _need("lab", target.scope if target.is_device else "lab-run")
    return kernel


def find_guest(cache: Path) -> Kernel:
    """A kernel of this checkout, stock or not, whose guest program another kernel is to run;
    RunError with the remedy if none has been built."""
    try:
        return find(cache, stock=True)
    except RunError:
        return find(cache, stock=False)


def build(
    cache: Path,
    *,
    stock: bool = False,
    source: Path | None = None,
    extra_configs: Iterable[Path] = (),
    jobs: int | None = None,
    target: Target = UML,
    say: Say = lambda _what, _done, _all: None,
    warn: Callable[[str], None] = lambda _text: None,
) -> Kernel:
    """The kernel for this checkout, built unless the cache has it.

    Raises InputError for an invalid --source, RunError if a tool is missing or a step fails.
    """
    folders.ours(cache, "--cache")
    _check_tools(target)
    made = inputs(stock, extra_configs, target)
    given = given_source(source) if source else None
    try:
        with _locked(cache, warn):
            _sweep(cache)
            chosen = given or fetch(cache, say)
            _note_source(cache, chosen)
            try:
                kernel = finished(cache, made, chosen)
            except DamagedError as problem:
                warn(f"{problem}; it is built again")
                folders.remove_tree(cache / "kernel" / made.key(chosen.digest))
                kernel = None
            if kernel:
                return kernel
            return _build(cache, made, chosen, jobs or os.cpu_count() or 1, say)
    except OSError as problem:
        raise _no_space(problem, cache) from None


def _build(cache: Path, made: Inputs, source: Source, jobs: int, say: Say) -> Kernel:
    target = made.target
    tree = _tree(cache, source, made.variant, say, target)
    _patch(tree, made, say)
    # one folder for each set of options, so that switching between them avoids full builds
    options = hashlib.sha256(" ".join(f.name for f in made.configs).encode()).hexdigest()[:8]
    begin = f"{target.name}-" if target.is_device else ""
    begin += source.digest[:12]
    _check_space(cache, OBJECT_BYTES)
    key = made.key(source.digest)
    with _object_folder(cache, f"{begin}-{made.variant}-{options}") as objects:
        if not made.stock:
            _reuse(cache / "object", f"{begin}-stock-*", objects, tree)
        with _at_build_path(tree) as place:
            _configure(place, objects, made, say)
            _compile(place, objects, target, cache / "build.log", jobs, say)
        with _unfinished(cache / "kernel" / key) as part:
            folders.copy_file(objects / target.image, part / "linux")
            folders.copy_file(objects / ".config", part / "config")
            _compile_guest(tree, made, part / "lab-guest")
            _compile_confine(made, part / "lab-confine")
            release = (objects / "include/config/kernel.release").read_text().strip()
            about = {
                "label": f"Linux {release}, {made.variant}"
                + (f", {target.name}" if target.is_device else ""),
                "has_policies": not made.stock,
                "source": source.digest,
                "patches": [p.name for p in made.patches],
                "configs": [c.name for c in made.configs],
                "compiler": made.compiler,
                "bytes": {file.name: file.stat().st_size for file in part.iterdir()},
            }
            whole = json.dumps(about, indent=2) + "\n"
            files.write_whole(str(part / "about.json"), whole.encode())
            if made.key(source.digest) != key:
                raise RunError(
                    "lab build: patches or sources changed during the build; run it again"
                )
    _prune(cache)
    found = finished(cache, made, source)
    assert found
    return found
