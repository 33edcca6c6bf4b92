"""What the objects in a model file consist of: the attributes of each class, with their types and sizes.

:data:`ATTRIBUTES` is the specification that :doc:`/file_formats` prints. Letters in it are sizes: within one object all
attributes that name a letter must agree on it, and an object in an object passes some of its letters on. Parameters of
constructors are checked against their annotations, or against the constraints that scikit-learn declares.
"""

from .attributes import ATTRIBUTES, format_attributes
from .checks import check_state, check_steps
from .kinds import Sizes
from .parameters import check_parameters, conforms
from .relations import RELATIONS

__all__ = [
    "ATTRIBUTES",
    "RELATIONS",
    "Sizes",
    "check_parameters",
    "check_state",
    "check_steps",
    "conforms",
    "format_attributes",
]
