# SPDX-License-Identifier: MIT
"""A commit gives the same engine in every folder: cargo's settings of this repository, applied to a
library that tells in which file it panics, and when its C part was compiled."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("cargo", "cc", "strip"))), reason="cargo or a compiler is missing"
)
SETTINGS = (".cargo/config.toml", "tools/rustc.sh")
FILES = {
    "probe/Cargo.toml": """
        [package]
        name = "probe"
        version = "0.1.0"
        edition = "2021"
        [lib]
        crate-type = ["cdylib"]
        [dependencies]
        other = { path = "../other" }
        [profile.release]
        debug = 1
        [workspace]
    """,
    "probe/src/lib.rs": "#[no_mangle] pub extern fn probe(n: usize) -> u8 { other::at(n) }",
    "other/Cargo.toml": '[package]\nname = "other"\nversion = "0.1.0"\nedition = "2021"\n',
    "other/when.c": "const char *when(void) { return __DATE__ __TIME__; }",
    "other/build.rs": """
        use std::process::Command;
        fn main() {
            let out = std::env::var("OUT_DIR").unwrap();
            let (object, library) = (format!("{out}/when.o"), format!("{out}/libwhen.a"));
            let compile = ["-c", "-fPIC", "when.c", "-o", &object];
            assert!(Command::new("cc").args(compile).status().unwrap().success());
            let pack = ["crs", &library, &object];
            assert!(Command::new("ar").args(pack).status().unwrap().success());
            println!("cargo:rustc-link-search={out}");
            println!("cargo:rustc-link-lib=static=when");
        }
    """,
    "other/src/lib.rs": """
        extern "C" { fn when() -> *const u8; }
        pub fn at(n: usize) -> u8 { [1, 2, 3][n] + unsafe { *when().add(n) } }
    """,
}


def built(folder: Path, **environment: str) -> bytes:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for name in (*SETTINGS, "crates/python/build.rs"):
        to = folder / name.replace("crates/python", "probe")
        to.parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, to)
    words = ["cargo", "build", "--release", "--offline", "--quiet"]
    unset = ("CARGO_TARGET_DIR", "RUSTC_WRAPPER", "RUSTFLAGS")
    plain = {key: value for key, value in os.environ.items() if key not in unset}
    subprocess.run(words, cwd=folder / "probe", env=plain | environment, check=True)
    library = folder / "probe/target/release/libprobe.so"
    subprocess.run(["strip", library], check=True)
    return library.read_bytes()


def test_folders_do_not_show_in_a_build(tmp_path: Path) -> None:
    short, long = tmp_path / "a", tmp_path / "much/longer"
    assert built(short) == built(long)
    assert str(tmp_path).encode() not in built(short)


def test_without_the_settings_they_do(tmp_path: Path) -> None:
    assert str(tmp_path).encode() in built(tmp_path / "a", RUSTC_WRAPPER="")
