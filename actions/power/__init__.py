"""The power of machines: verbs, and the ways to a BMC (Redfish, ipmitool, a script of the site)."""
