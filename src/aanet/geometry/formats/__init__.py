"""One reader per family of calibration files; `aanet.geometry.calibration` chooses among them."""
