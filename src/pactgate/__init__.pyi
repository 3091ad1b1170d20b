# The public names for type checkers; at run time `__init__.py` makes each when it is asked for.

from pactgate.app import Gateway as Gateway
from pactgate.conformance.check import check_capture as check_capture
from pactgate.tools import Call as Call
from pactgate.tools import Retryable as Retryable
from pactgate.tools import ToolError as ToolError
from pactgate.tools import tool as tool

__version__: str
