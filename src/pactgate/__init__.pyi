# The public names for type checkers; at run time `__init__.py` makes each when it is asked for.

from pactgate.app import Gateway as Gateway
from pactgate.conformance.check import check_capture as check_capture
from pactgate.tool_values import Call as Call
from pactgate.tool_values import Image as Image
from pactgate.tool_values import Message as Message
from pactgate.tool_values import NotAnswered as NotAnswered
from pactgate.tools import Retryable as Retryable
from pactgate.tools import ToolError as ToolError
from pactgate.tools import prompt as prompt
from pactgate.tools import resource as resource
from pactgate.tools import tool as tool

__version__: str
