"""Networks for grafts: perceptrons, and networks that obey a physical law whatever their weights."""
