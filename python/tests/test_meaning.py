# SPDX-License-Identifier: MIT
"""The hash of what files mean: prose and layout do not count, everything else does."""

from pathlib import Path

import meaning
import pytest

BEFORE = {
    "a.c": 'int a = 1; /* one */\n// two\nchar *s = "/* kept */";\nif (a)\n\tf(a, \'"\');\n',
    "a.rs": '/// Doc.\nfn f<\'a>(x: &\'a str) -> u8 { g(b\'"\', r#"// "kept""#, 1) }\n'
    "#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n",
    "a.py": '"""Module."""\n\n\ndef f(x: int) -> str:\n    """Doc."""\n'
    '    # why\n    return f"{x} # kept" + "a"\n',
    "a.sh": "#!/bin/sh\n# why\nset -eu\n\techo '# kept'\n",
    "a.toml": 'title = "t"\nsource = """RFC"""\n[one]\nn = 1 # why\n',
    "a.patch": "Subject: one\n\nWhy.\n---\n a | 1 +\n\ndiff --git a/a b/a\n+int a;\n-- \n2.39\n",
    "a.csv": "1,2\n",
}
SAME = {
    "a.c": 'int a=1;\nchar *s =\n\t"/* kept */";\nif (a) f( a, \'"\' ); /* else */\n',
    "a.rs": "fn f<'a>(\n    x: &'a str\n) -> u8 {\n    // why\n"
    '    g(b\'"\', r#"// "kept""#, 1)\n}\n',
    "a.py": 'def f(x: int) -> str:\n    """Another: "quoted"."""\n'
    '    return f"{x} # kept"  +  "a"  # why\n',
    "a.sh": "#!/bin/sh\nset -eu\n# other\n\n  echo '# kept'\n",
    "a.toml": 'source = "another"\none = { n = 1 }\ntitle = "t"\n',
    "a.patch": "Subject: two\n---\n\ndiff --git a/a b/a\n+int a;\n-- \n2.47\n",
    "a.csv": "1,2\n",
}
OTHER = {
    "a.c": [("= 1", "= 2"), ("kept", "lost"), ("int a", "inta"), ("f(a, ", "f(b, ")],
    "a.rs": [("1)", "2)"), ("kept", "lost"), ("b'\"'", "b'x'"), ("fn f", "fnf")],
    "a.py": [("# kept", "# lost"), ('"a"', '"b"'), ("x: int", "y: int"), ("def f", "def g")],
    "a.sh": [("# kept", "# lost"), ("set -eu", "set -e")],
    "a.toml": [("n = 1", "n = 2"), ('"t"', '"u"'), ("[one]", "[two]")],
    "a.patch": [("+int a", "+int b"), ("a/a b/a", "a/b b/b")],
    "a.csv": [("1,2", "1, 2")],
}


def of(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return meaning.of_files([folder / name])


@pytest.mark.parametrize("name", BEFORE)
def test_prose_and_layout_do_not_count(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, name, BEFORE[name]) == of(tmp_path, name, SAME[name])


@pytest.mark.parametrize(("name", "edit"), [(n, edit) for n in OTHER for edit in OTHER[n]])
def test_everything_else_counts(tmp_path: Path, name: str, edit: tuple[str, str]) -> None:
    assert edit[0] in BEFORE[name]
    changed = BEFORE[name].replace(*edit)
    assert of(tmp_path, name, BEFORE[name]) != of(tmp_path, name, changed)


def test_a_shell_script_needs_no_suffix(tmp_path: Path) -> None:
    first = of(tmp_path, "check", "#!/bin/sh\n# one\nset -e\n")
    assert first == of(tmp_path, "check", "#!/bin/sh\n# two\nset -e\n")
    assert first != of(tmp_path, "check", "#!/bin/sh\n# two\nset -u\n")


def test_the_name_counts_and_the_folder_does_not(tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.c").write_text("int a;\n")
    (tmp_path / "b.c").write_text("int a;\n")
    one, two, other = (meaning.of_files([tmp_path / p]) for p in ("one/a.c", "two/a.c", "b.c"))
    assert one == two != other
    assert meaning.of_files([tmp_path / "b.c", tmp_path / "one/a.c"]) == meaning.of_files(
        [tmp_path / "one/a.c", tmp_path / "b.c"]
    )


@pytest.mark.parametrize("folder", ["core", "crates", "python/ackwise", "linux"])
def test_every_file_of_the_project_can_be_read(root: Path, folder: str) -> None:
    """None comes out empty, and taking a file's comments out twice changes nothing more."""
    for file in (root / folder).rglob("*"):
        if file.suffix in (".c", ".h", ".rs") and not {"target", "build"} & {*file.parts}:
            once = meaning.meaning(file).decode()
            assert once, file
            again = meaning._c(once) if file.suffix != ".rs" else meaning._rust(once)
            assert again == once, file
        elif file.suffix == ".py" and "\ndef " in file.read_text(encoding="utf-8"):
            assert meaning.meaning(file), file
