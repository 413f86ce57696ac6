# SPDX-License-Identifier: MIT
"""`ackwise completion`: the script that lets a shell complete ackwise's command line."""

import click

from ackwise.cli.options import OneOf
from ackwise.cli.shape import COMPLETE, Command, argument

_TEXT = """\
The script completes commands, options and their values: policies, shipped links, workloads and
plans, experiments, claims and interfaces.
"""
_EXAMPLES = """\
ackwise completion bash > ~/.local/share/bash-completion/completions/ackwise
ackwise completion zsh > ~/.zfunc/_ackwise   # with fpath+=~/.zfunc before compinit in ~/.zshrc
ackwise completion fish > ~/.config/fish/completions/ackwise.fish
"""


@click.command("completion", cls=Command, text=_TEXT, examples=_EXAMPLES)
@argument("shell", type=OneOf("bash", "zsh", "fish"), help="shell to complete in")
def command(shell: str) -> int:
    """Exit code."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"{shell} has no completion")
    root = click.get_current_context().find_root()
    print(kind(root.command, {}, "ackwise", COMPLETE).source(), end="")
    return 0
