"""Networks for grafts: MLPs, and networks that obey a physical law whatever their weights."""
