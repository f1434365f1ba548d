"""`nodewarden sandbox`: the real bot, a cluster to break, and a stand-in for Slack, on one machine.

`sandbox.Sandbox` puts them together, `demo` plays the product's main job on it. The bot runs as
`nodewarden serve` in a process of its own and knows nothing of this package. Everything listens on
127.0.0.1, and everything ends with the process that started it.
"""
