"""The tools that the agent has. A new one is written in a module of this folder, and listed."""

from tools.actions import cancel_order, change_address, escalate_to_human, request_refund
from tools.orders import compare_orders, get_delivery, get_order, list_orders
from tools.policies import get_policy

TOOLS = (get_order, get_delivery, list_orders, compare_orders, get_policy)
WRITES = (cancel_order, change_address, request_refund, escalate_to_human)
