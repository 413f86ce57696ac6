# SPDX-License-Identifier: MIT
"""No two modules of a crate depend on each other, and tools/rust_circles.py finds those that do."""

from pathlib import Path

import pytest
import rust_circles
from conftest import ROOT as CHECKOUT

CRATES = CHECKOUT / "crates"


@pytest.mark.parametrize("source", sorted(CRATES.glob("*/src")), ids=lambda path: path.parent.name)
def test_no_crate_has_a_circle(source: Path) -> None:
    assert rust_circles.circles(source) == []


def crate(folder: Path, **files: str) -> Path:
    source = folder / "planted" / "src"
    for name, text in files.items():
        file = source / f"{name.replace('__', '/')}.rs"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return source


ROOT = "mod a;\nmod b;\nmod c;\n"
B_NEEDS_A = "use crate::a::A;\npub struct B(A);\n"
CIRCLE = [["crate::a", "crate::b"]]


@pytest.mark.parametrize(
    "a",
    [
        "use crate::b::B;\npub struct A(B);",
        "use crate::{b::{self, B}, c};\npub struct A(B);",
        "use super::b::B as Other;\npub struct A(Other);",
        "pub struct A(Box<crate::b::B>);",
        "pub struct A;\nfn f() { let c = '\"'; super::b::run(c) }",
        "use crate::B;\npub struct A(B);",
    ],
    ids=["plain", "nested", "super", "inline", "in-a-function", "handed-on"],
)
def test_a_planted_circle_is_found(tmp_path: Path, a: str) -> None:
    source = crate(tmp_path, lib=ROOT + "pub use b::B;", a=a, b=B_NEEDS_A, c="")
    assert rust_circles.circles(source) == CIRCLE


@pytest.mark.parametrize(
    "a",
    [
        "pub struct A;\n// use crate::b::B;\n/* use crate::b::B; */",
        'pub struct A;\nconst TEXT: &str = "crate::b::B";',
        "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}",
        "use crate::c::C;\npub struct A(C);",
    ],
    ids=["comment", "string", "test", "another"],
)
def test_what_is_no_dependency_is_no_circle(tmp_path: Path, a: str) -> None:
    source = crate(tmp_path, lib=ROOT, a=a, b=B_NEEDS_A, c="pub struct C;")
    assert rust_circles.circles(source) == []


def test_a_circle_through_a_folder_and_three_files_is_found(tmp_path: Path) -> None:
    source = crate(
        tmp_path,
        lib="mod a;\nmod b;\n",
        a="use crate::b::inner::C;\npub struct A(C);",
        b__mod="pub mod inner;\nuse crate::a::A;\npub struct B(A);",
        b__inner="use super::B;\npub struct C(B);",
    )
    assert rust_circles.circles(source) == [["crate::a", "crate::b", "crate::b::inner"]]
