"""A local stand-in for one Slack workspace, for the sandbox and the tests.

`server.SlackStandIn` is the way in. It speaks the Web API and Socket Mode over loopback, so the bot
that talks to it is the bot that ships. It must never be reachable from another machine, and never
hold anything but what a bot sent to it or a person typed on its page.
"""
