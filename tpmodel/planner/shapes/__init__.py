"""Any config.json as a shape: its layers, its modules and their bytes; and the shapes that are known by name."""
