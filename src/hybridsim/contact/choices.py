"""The contact models and friction laws that are selected by name; listing them does not load JAX."""

from hybridsim.core.choices import ImportTable

CONTACTS = ImportTable(
    {
        "none": "hybridsim.contact.contact:NoContact",
        "impulse": "hybridsim.contact.impulse.impulse_contact:ImpulseContact",
        "compliant": "hybridsim.contact.compliant.compliant_contact:CompliantContact",
    }
)
"""Contact models; each can be created without arguments."""

STABILIZATIONS = ImportTable(
    {
        "recovery_time": "hybridsim.contact.impulse.stabilization:RecoveryTime",
        "erp": "hybridsim.contact.impulse.stabilization:ERP",
        "baumgarte": "hybridsim.contact.impulse.stabilization:Baumgarte",
    }
)
"""Constraint stabilizations of impulse contact."""

FRICTION_LAWS = ImportTable(
    {
        "coulomb": "hybridsim.contact.compliant.friction_laws:Coulomb",
        "andersson": "hybridsim.contact.compliant.friction_laws:Andersson",
        "hollars": "hybridsim.contact.compliant.friction_laws:Hollars",
        "brown": "hybridsim.contact.compliant.friction_laws:Brown",
    }
)
"""Friction laws of compliant contact; each can be created without arguments."""
