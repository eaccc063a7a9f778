"""Studies, benches and simulated worlds: everything that tries surepick out. Not part of the wheel."""
