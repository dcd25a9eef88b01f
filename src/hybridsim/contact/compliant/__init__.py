"""Compliant contact: Hunt–Crossley normal forces and friction laws."""
