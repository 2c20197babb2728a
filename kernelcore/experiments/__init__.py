"""One module per published family of systems: its systems, grids, protocol and numbers."""
