"""The hands: all that touches a cluster, a node or a pager. Reached only through `actions.catalogue`."""
