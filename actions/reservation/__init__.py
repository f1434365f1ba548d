"""Reservations of this bot: made, given other nodes, taken away; nobody else's is ever touched."""
