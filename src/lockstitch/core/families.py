"""The families of calls and outputs, as a table.

Everything that decides which output may answer which call, and by which field they are joined,
lives in this file. A type that is in none of the tables is not part of any pair."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Join(Enum):
    """The fields that join a call (left) and its output (right)."""

    CALL_ID = "call_id = call_id"
    CALL_ID_OR_ID = "call_id or id = call_id or id"
    APPROVAL = "id = approval_request_id"
    TOOL_CALL_ID = "tool_calls[].id = tool_call_id"
    TOOL_USE_ID = "id = tool_use_id"
    SAME_TOOL_CALL_ID = "tool_call_id = tool_call_id"
    ID_OR_NAME = "id = id, or name = name where one has no id"
    BEDROCK_ID = "toolUseId = toolUseId"
    ID = "id = id"
    PI_CALL_ID = "id = toolCallId"
    TOOL_CALL_ID_OF_PART = "toolCallId = toolCallId"
    APPROVAL_ID = "approvalId = approvalId"


class Family(Struct, frozen=True, kw_only=True):
    """One kind of call and the outputs that may answer it."""

    name: str
    call_type: str
    output_type: str
    join: Join = Join.CALL_ID
    also_answered_by: tuple[str, ...] = ()
    """Names of other families whose outputs are legal answers too."""
    by_server: bool = False
    """The provider answers it: broken only once the conversation has gone on without."""
    keyless_call: bool = False
    """A call without a key is joined by position, or stands alone."""
    keyless_output: bool = False
    """An output without a key is legal alone."""
    by_name: bool = False
    """Where no id joins them, the tool's name does: outputs answer the newest open calls of that
    tool in order. Then the key is the name, or the alias of a call or output that has an id."""
    one_message: bool = False
    """The outputs of calls made at once must stand in one message."""
    inline: bool = False
    """The output is written into the call itself."""
    asks_first: bool = False
    """The call is a question before the act: unanswered means that nothing was started."""

    def accepts(self, output: Family) -> bool:
        """May an output of that family answer a call of this one?"""
        return output is self or output.name in self.also_answered_by


# --- OpenAI Responses: nine families -----------------------------------------------------------

FUNCTION = Family(
    name="function",
    call_type="function_call",
    output_type="function_call_output",
    # "an output with no `call_id` is a named external event, legal alone, never an orphan"
    keyless_output=True,
)
CUSTOM = Family(name="custom", call_type="custom_tool_call", output_type="custom_tool_call_output")
COMPUTER = Family(name="computer", call_type="computer_call", output_type="computer_call_output")
SHELL = Family(name="shell", call_type="shell_call", output_type="shell_call_output")
LOCAL_SHELL = Family(
    name="local shell",
    call_type="local_shell_call",
    output_type="local_shell_call_output",
    # OpenAI's types join by the output's `id`; Codex answers with a function_call_output.
    join=Join.CALL_ID_OR_ID,
    also_answered_by=("function",),
)
APPLY_PATCH = Family(
    name="apply patch", call_type="apply_patch_call", output_type="apply_patch_call_output"
)
TOOL_SEARCH = Family(
    name="tool search",
    call_type="tool_search_call",
    output_type="tool_search_output",
    # `call_id` is null when the server ran it: then joined by position.
    keyless_call=True,
    keyless_output=True,
)
PROGRAM = Family(name="program", call_type="program", output_type="program_output", by_server=True)
MCP_APPROVAL = Family(
    name="MCP approval",
    call_type="mcp_approval_request",
    output_type="mcp_approval_response",
    join=Join.APPROVAL,
    asks_first=True,
)

RESPONSES_FAMILIES = (
    FUNCTION,
    CUSTOM,
    COMPUTER,
    SHELL,
    LOCAL_SHELL,
    APPLY_PATCH,
    TOOL_SEARCH,
    PROGRAM,
    MCP_APPROVAL,
)

SELF_CONTAINED = frozenset(
    {
        "mcp_call",
        "mcp_list_tools",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
    }
)
"""Calls that the server ran and that hold their own result: nothing answers them."""

# --- the other dialects ------------------------------------------------------------------------

CHAT_TOOL = Family(
    name="chat tool",
    call_type="tool_calls",
    output_type="tool",
    join=Join.TOOL_CALL_ID,
)
TOOL_USE = Family(
    name="tool use",
    call_type="tool_use",
    output_type="tool_result",
    join=Join.TOOL_USE_ID,
)
SERVER_TOOL_USE = Family(
    name="server tool use",
    call_type="server_tool_use",
    output_type="web_search_tool_result",  # and so on: NAME_tool_result
    join=Join.TOOL_USE_ID,
    by_server=True,
)

MCP_TOOL_USE = Family(
    name="MCP tool use",
    call_type="mcp_tool_use",
    output_type="mcp_tool_result",
    join=Join.TOOL_USE_ID,
    by_server=True,
)

PYDANTIC_AI_TOOL = Family(
    name="Pydantic AI tool",
    call_type="tool-call",
    output_type="tool-return",
    join=Join.SAME_TOOL_CALL_ID,
)
PYDANTIC_AI_NATIVE_TOOL = Family(
    name="Pydantic AI native tool",
    call_type="builtin-tool-call",
    output_type="builtin-tool-return",
    join=Join.SAME_TOOL_CALL_ID,
    by_server=True,
)
PI_TOOL = Family(
    name="pi tool",
    call_type="toolCall",
    output_type="toolResult",
    join=Join.PI_CALL_ID,
)
OPENCODE_TOOL = Family(
    name="opencode tool",
    call_type="tool",
    output_type="state",  # the field of the part that holds the result
    inline=True,
)

REALTIME_FAMILIES = (FUNCTION, MCP_APPROVAL)

# Gemini is written in camel case (JSON) and in snake case (Python); either may answer the other.
GEMINI_FUNCTION = Family(
    name="Gemini function",
    call_type="functionCall",
    output_type="functionResponse",
    join=Join.ID_OR_NAME,
    also_answered_by=("Gemini function in snake case",),
    by_name=True,
    one_message=True,
)
GEMINI_FUNCTION_SNAKE = Family(
    name="Gemini function in snake case",
    call_type="function_call",
    output_type="function_response",
    join=Join.ID_OR_NAME,
    also_answered_by=("Gemini function",),
    by_name=True,
    one_message=True,
)
GEMINI_TOOL = Family(
    name="Gemini server tool",
    call_type="toolCall",
    output_type="toolResponse",
    join=Join.ID,
    also_answered_by=("Gemini server tool in snake case",),
    by_server=True,
)
GEMINI_TOOL_SNAKE = Family(
    name="Gemini server tool in snake case",
    call_type="tool_call",
    output_type="tool_response",
    join=Join.ID,
    also_answered_by=("Gemini server tool",),
    by_server=True,
)
GEMINI_FAMILIES = (GEMINI_FUNCTION, GEMINI_FUNCTION_SNAKE, GEMINI_TOOL, GEMINI_TOOL_SNAKE)

BEDROCK_TOOL_USE = Family(
    name="Bedrock tool use",
    call_type="toolUse",
    output_type="toolResult",
    join=Join.BEDROCK_ID,
)
BEDROCK_SERVER_TOOL_USE = Family(
    name="Bedrock server tool use",
    call_type="server_tool_use",
    output_type="toolResult",
    join=Join.BEDROCK_ID,
    # A result in the user's turn does not show who ran the tool.
    also_answered_by=("Bedrock tool use",),
    by_server=True,
)
BEDROCK_FAMILIES = (BEDROCK_TOOL_USE, BEDROCK_SERVER_TOOL_USE)
# --- LangChain: one family for each shape of its messages --------------------------------------

LANGCHAIN_TOOL = Family(
    name="LangChain tool",
    call_type="tool call of an AIMessage",
    output_type="ToolMessage",
    join=Join.TOOL_CALL_ID,
    also_answered_by=("LangChain tool in data", "constructed LangChain tool"),
)
LANGCHAIN_TOOL_IN_DATA = Family(
    name="LangChain tool in data",
    call_type="tool call of an AIMessage in data",
    output_type="ToolMessage in data",
    join=Join.TOOL_CALL_ID,
    also_answered_by=("LangChain tool", "constructed LangChain tool"),
)
LANGCHAIN_TOOL_CONSTRUCTED = Family(
    name="constructed LangChain tool",
    call_type="tool call of a constructed AIMessage",
    output_type="constructed ToolMessage",
    join=Join.TOOL_CALL_ID,
    also_answered_by=("LangChain tool", "LangChain tool in data"),
)
LANGCHAIN_SERVER_TOOL = Family(
    name="LangChain server tool",
    call_type="server_tool_call",
    output_type="server_tool_result",
    join=Join.TOOL_CALL_ID,
    by_server=True,
)

LANGCHAIN_SHAPES = (LANGCHAIN_TOOL, LANGCHAIN_TOOL_IN_DATA, LANGCHAIN_TOOL_CONSTRUCTED)
LANGCHAIN_FAMILIES = (*LANGCHAIN_SHAPES, LANGCHAIN_SERVER_TOOL)

# --- Vercel AI SDK ------------------------------------------------------------------------------

VERCEL_TOOL = Family(
    name="Vercel tool",
    call_type="tool-call",
    output_type="tool-result",
    join=Join.TOOL_CALL_ID_OF_PART,
    also_answered_by=("Vercel provider tool", "Vercel tool of version 4"),
)
VERCEL_PROVIDER_TOOL = Family(
    name="Vercel provider tool",
    call_type="tool-call",  # with `providerExecuted`
    output_type="tool-result",
    join=Join.TOOL_CALL_ID_OF_PART,
    # The SDK itself writes a denial of such a call into a tool message.
    also_answered_by=("Vercel tool", "Vercel tool of version 4"),
    by_server=True,
)
VERCEL_TOOL_V4 = Family(
    name="Vercel tool of version 4",
    call_type="tool-call",  # with `args` instead of `input`
    output_type="tool-result",  # with `result` instead of `output`
    join=Join.TOOL_CALL_ID_OF_PART,
    also_answered_by=("Vercel tool", "Vercel provider tool"),
)
VERCEL_APPROVAL = Family(
    name="Vercel approval",
    call_type="tool-approval-request",
    output_type="tool-approval-response",
    join=Join.APPROVAL_ID,
    also_answered_by=("Vercel provider approval",),
    asks_first=True,
)
VERCEL_PROVIDER_APPROVAL = Family(
    name="Vercel provider approval",
    call_type="tool-approval-request",  # for a call with `providerExecuted`
    output_type="tool-approval-response",
    join=Join.APPROVAL_ID,
    also_answered_by=("Vercel approval",),
    asks_first=True,
)
VERCEL_UI_TOOL = Family(
    name="Vercel UI tool",
    call_type="tool part",  # tool-NAME or dynamic-tool; the output is in the part
    output_type="tool part with an output",
    join=Join.TOOL_CALL_ID_OF_PART,
    inline=True,
)
VERCEL_UI_PROVIDER_TOOL = Family(
    name="Vercel UI provider tool",
    call_type="tool part",  # with `providerExecuted`
    output_type="tool part with an output",
    join=Join.TOOL_CALL_ID_OF_PART,
    by_server=True,
    inline=True,
)
VERCEL_UI_APPROVAL = Family(
    name="Vercel UI approval",
    call_type="tool part",  # in state approval-requested
    output_type="tool part with an output",
    join=Join.TOOL_CALL_ID_OF_PART,
    asks_first=True,
    inline=True,
)

VERCEL_FAMILIES = (
    VERCEL_TOOL,
    VERCEL_PROVIDER_TOOL,
    VERCEL_TOOL_V4,
    VERCEL_APPROVAL,
    VERCEL_PROVIDER_APPROVAL,
    VERCEL_UI_TOOL,
    VERCEL_UI_PROVIDER_TOOL,
    VERCEL_UI_APPROVAL,
)

ALL_FAMILIES = (
    *RESPONSES_FAMILIES,
    CHAT_TOOL,
    TOOL_USE,
    SERVER_TOOL_USE,
    MCP_TOOL_USE,
    PYDANTIC_AI_TOOL,
    PYDANTIC_AI_NATIVE_TOOL,
    *GEMINI_FAMILIES,
    *BEDROCK_FAMILIES,
    *LANGCHAIN_FAMILIES,
    PI_TOOL,
    OPENCODE_TOOL,
    *VERCEL_FAMILIES,
)
