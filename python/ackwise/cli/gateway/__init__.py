# SPDX-License-Identifier: MIT
"""`ackwise gateway`: ACK separation on a real interface."""

import click

from ackwise.cli import extension
from ackwise.cli.gateway import model, queues
from ackwise.cli.shape import Group

_TEXT = """\
Pure ACKs get an HTB class of their own, with a guarantee and a ceiling derived from the link's
rates. Give the measured rates of the line, with the uplink a few percent lower, so that the queue
builds here and not in the modem.
"""
_EXAMPLES = """\
ackwise gateway model --down 2.1mbit --up 800kbit
ackwise gateway plan eth0 --down 50mbit --up 5mbit   # prints the tc commands, changes nothing
sudo ackwise gateway up eth0 --down 50mbit --up 5mbit
ackwise gateway status eth0 --watch 2
sudo ackwise gateway down eth0
sudo ackwise gateway test eth0 --down 50mbit --up 5mbit --server iperf.example.net
"""


@click.group("gateway", cls=Group, text=_TEXT, examples=_EXAMPLES)
def command() -> None:
    """Group of subcommands."""


for verb in (model.model, queues.plan, queues.up, queues.down, queues.status):
    command.add_command(verb)
command.add_command(extension.command("gateway-test", "gateway test"), "test")
