# SPDX-License-Identifier: MIT
"""Names and titles that a shell, a unit, a spreadsheet, a page or a terminal could obey."""

import os

CONTROL = "\x1b]0;owned\x07", "\x1b[2J", "\x9b2J", "\x7f", "\x00", "\x08\x08", "\r"
DIRECTION = "\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\ufeff"

# Text of a plan: anything that TOML can hold.
TITLES = (
    *(f"a{c}b" for c in (*CONTROL, *DIRECTION)),
    *("\x1b[8mhidden\x1b[0m", "\x1b[31mred", "\x1b]8;;http://x\x07link\x1b]8;;\x07", "\U000e0041"),
    *("two\nlines", "one\nackwise: all is well", "tab\there", "\n", "\t=1+1", "\r=1+1"),
    *("=1+1", "+1", "-1+1", "@SUM(1)", "=HYPERLINK(\"http://x\";\"y\")", " =1+1", "a;=1+1"),
    *("a; -1", "\uff1d1+1", "-", "\"=1+1", "'=1+1", "a,b\"c", "=cmd|' /C calc'!A0", "-2.5"),
    *("</title><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "]]>", "<!--"),
    *("</script >", "\" onload=\"alert(1)", "&lt;b&gt;", "@@DATA@", "javascript:alert(1)"),
    *("[bold]x[/bold]", "[link=http://x]y[/link]", ":smile:", "%s%n", "\\x1b[2J", "x" * 1900),
)  # fmt: skip

# What Linux takes for the name of an interface: at most 15 bytes, no slash, colon or whitespace. A
# command that is obeyed is `x`.
INTERFACES = (
    *("$(x)", "`x`", "$x", "${x}", "a;x", ";x", ";", "a|x", "|x", "a&x", "&", "a&&x", "||x"),
    *("a>x", ">x", "<x", "'", "''", "';x;'", "'$(x)'", '"', '";x;"', "a'b\"c", "\\", "a\\"),
    *("\\n", "\\x41", "\\033[2J", "\\c", "\\$(x)", "%n", "%i", "%%", "%", "%s", "$$", "$1", "$@"),
    *("-rf", "--", "-", "-n", "-e", "--help", "#", "a#b", "!", "!!", "*", "?", "[a]", "~", "~root"),
    *("{a,b}", "x}y", "(", ")", "(x)", "=", "x=y", "@x", "+x", ".x", "...", "_x", "END"),
    *("esac", "a,b", "done", "if"),
    *("\x1b[2J", "a\x07b", "\x7f", "\x01", "\x08a", "a\x9bb", "\u202eabc", "\ufeffx", "e\u0301"),
    *("é", "日本語", os.fsdecode(b"\xff\x80"), os.fsdecode(b"a\xc3"), "if7", "eth0.7", "br-lan"),
)  # fmt: skip


def is_inert(text: str) -> bool:
    """Whether nothing in it is obeyed, once lines are laid out and bytes decoded."""
    return not any(
        ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in "".join(DIRECTION) for c in text
        if c not in "\n\t"
    )  # fmt: skip
