"""Every rule, one per file, in the order of their codes. A rule that is not listed here does not exist.

INV-001 to INV-007, COMP-001 and COMP-002 are the documented ones and decide by default; GW-001 to GW-040 follow the core
invariants of the specification number by number, GW-041 and on are what a gateway can be caught at, GW-101 and on are
about servers side by side. Codes are never used again.
Must not: scan for rules, or hold anything but the list.
"""

from __future__ import annotations

from typing import Final

from pactgate.conformance.rule import Rule
from pactgate.conformance.rules.composition.comp001_tool_namespace_overlap import ToolNamespaceOverlap
from pactgate.conformance.rules.composition.comp002_request_id_collision import RequestIdCollision
from pactgate.conformance.rules.composition.gw101_prompt_name_overlap import PromptNameOverlap
from pactgate.conformance.rules.composition.gw102_resource_uri_overlap import ResourceUriOverlap
from pactgate.conformance.rules.composition.gw103_tool_shadowed import ToolShadowed
from pactgate.conformance.rules.composition.gw104_names_fold_together import NamesFoldTogether
from pactgate.conformance.rules.composition.gw105_names_look_alike import NamesLookAlike
from pactgate.conformance.rules.composition.gw106_separators_collide import SeparatorsCollide
from pactgate.conformance.rules.composition.gw107_label_repeated import LabelRepeated
from pactgate.conformance.rules.composition.gw108_description_names_foreign_tool import DescriptionNamesForeignTool
from pactgate.conformance.rules.composition.gw109_prefix_shared import PrefixShared
from pactgate.conformance.rules.gw.gw001_malformed_message import MalformedMessage
from pactgate.conformance.rules.gw.gw002_illegal_request_id import IllegalRequestId
from pactgate.conformance.rules.gw.gw003_request_id_reused import RequestIdReused
from pactgate.conformance.rules.gw.gw004_answer_without_request import AnswerWithoutRequest
from pactgate.conformance.rules.gw.gw005_batch_not_negotiated import BatchNotNegotiated
from pactgate.conformance.rules.gw.gw006_request_unanswered import RequestUnanswered
from pactgate.conformance.rules.gw.gw007_version_misnegotiated import VersionMisnegotiated
from pactgate.conformance.rules.gw.gw008_message_before_ready import MessageBeforeReady
from pactgate.conformance.rules.gw.gw009_initialize_cancelled import InitializeCancelled
from pactgate.conformance.rules.gw.gw010_client_capability_undeclared import ClientCapabilityUndeclared
from pactgate.conformance.rules.gw.gw011_server_capability_undeclared import ServerCapabilityUndeclared
from pactgate.conformance.rules.gw.gw012_signal_undeclared import SignalUndeclared
from pactgate.conformance.rules.gw.gw013_update_not_subscribed import UpdateNotSubscribed
from pactgate.conformance.rules.gw.gw014_log_below_level import LogBelowLevel
from pactgate.conformance.rules.gw.gw015_session_id_lost import SessionIdLost
from pactgate.conformance.rules.gw.gw016_ended_session_answered import EndedSessionAnswered
from pactgate.conformance.rules.gw.gw017_version_header_missing import VersionHeaderMissing
from pactgate.conformance.rules.gw.gw018_notice_not_accepted import NoticeNotAccepted
from pactgate.conformance.rules.gw.gw019_wrong_media_type import WrongMediaType
from pactgate.conformance.rules.gw.gw020_get_without_stream import GetWithoutStream
from pactgate.conformance.rules.gw.gw021_event_repeated import EventRepeated
from pactgate.conformance.rules.gw.gw022_message_after_answer import MessageAfterAnswer
from pactgate.conformance.rules.gw.gw023_progress_out_of_turn import ProgressOutOfTurn
from pactgate.conformance.rules.gw.gw024_cancelled_request_answered import CancelledRequestAnswered
from pactgate.conformance.rules.gw.gw025_envelope_missing import EnvelopeMissing
from pactgate.conformance.rules.gw.gw026_removed_feature_used import RemovedFeatureUsed
from pactgate.conformance.rules.gw.gw027_result_type_missing import ResultTypeMissing
from pactgate.conformance.rules.gw.gw028_input_required_misused import InputRequiredMisused
from pactgate.conformance.rules.gw.gw029_retry_differs import RetryDiffers
from pactgate.conformance.rules.gw.gw030_request_state_strayed import RequestStateStrayed
from pactgate.conformance.rules.gw.gw031_cache_hint_missing import CacheHintMissing
from pactgate.conformance.rules.gw.gw032_header_body_mismatch import HeaderBodyMismatch
from pactgate.conformance.rules.gw.gw033_param_header_mismatch import ParamHeaderMismatch
from pactgate.conformance.rules.gw.gw034_wrong_http_status import WrongHttpStatus
from pactgate.conformance.rules.gw.gw035_error_data_incomplete import ErrorDataIncomplete
from pactgate.conformance.rules.gw.gw036_error_code_reserved import ErrorCodeReserved
from pactgate.conformance.rules.gw.gw037_subscription_breach import SubscriptionBreach
from pactgate.conformance.rules.gw.gw038_log_unasked import LogUnasked
from pactgate.conformance.rules.gw.gw039_cancelled_misdirected import CancelledMisdirected
from pactgate.conformance.rules.gw.gw040_tool_list_faulty import ToolListFaulty
from pactgate.conformance.rules.gw.gw041_output_breaks_schema import OutputBreaksSchema
from pactgate.conformance.rules.gw.gw042_arguments_break_schema import ArgumentsBreakSchema
from pactgate.conformance.rules.gw.gw043_tool_never_listed import ToolNeverListed
from pactgate.conformance.rules.gw.gw044_list_changed_silently import ListChangedSilently
from pactgate.conformance.rules.gw.gw045_secret_in_error import SecretInError
from pactgate.conformance.rules.gw.gw046_hidden_characters import HiddenCharacters
from pactgate.conformance.rules.gw.gw047_cursor_invented import CursorInvented
from pactgate.conformance.rules.gw.gw048_capabilities_disagree import CapabilitiesDisagree
from pactgate.conformance.rules.gw.gw049_initialize_repeated import InitializeRepeated
from pactgate.conformance.rules.gw.gw050_discovery_missing import DiscoveryMissing
from pactgate.conformance.rules.inv.inv001_initialize_not_first import InitializeNotFirst
from pactgate.conformance.rules.inv.inv002_initialized_missing import InitializedMissing
from pactgate.conformance.rules.inv.inv003_list_without_capability import ListWithoutCapability
from pactgate.conformance.rules.inv.inv004_capability_always_fails import CapabilityAlwaysFails
from pactgate.conformance.rules.inv.inv005_tool_result_misshapen import ToolResultMisshapen
from pactgate.conformance.rules.inv.inv006_error_misshapen import ErrorMisshapen
from pactgate.conformance.rules.inv.inv007_method_not_found_code import MethodNotFoundCode

ALL: Final[tuple[type[Rule], ...]] = (
    InitializeNotFirst,
    InitializedMissing,
    ListWithoutCapability,
    CapabilityAlwaysFails,
    ToolResultMisshapen,
    ErrorMisshapen,
    MethodNotFoundCode,
    ToolNamespaceOverlap,
    RequestIdCollision,
    MalformedMessage,
    IllegalRequestId,
    RequestIdReused,
    AnswerWithoutRequest,
    BatchNotNegotiated,
    RequestUnanswered,
    VersionMisnegotiated,
    MessageBeforeReady,
    InitializeCancelled,
    ClientCapabilityUndeclared,
    ServerCapabilityUndeclared,
    SignalUndeclared,
    UpdateNotSubscribed,
    LogBelowLevel,
    SessionIdLost,
    EndedSessionAnswered,
    VersionHeaderMissing,
    NoticeNotAccepted,
    WrongMediaType,
    GetWithoutStream,
    EventRepeated,
    MessageAfterAnswer,
    ProgressOutOfTurn,
    CancelledRequestAnswered,
    EnvelopeMissing,
    RemovedFeatureUsed,
    ResultTypeMissing,
    InputRequiredMisused,
    RetryDiffers,
    RequestStateStrayed,
    CacheHintMissing,
    HeaderBodyMismatch,
    ParamHeaderMismatch,
    WrongHttpStatus,
    ErrorDataIncomplete,
    ErrorCodeReserved,
    SubscriptionBreach,
    LogUnasked,
    CancelledMisdirected,
    ToolListFaulty,
    OutputBreaksSchema,
    ArgumentsBreakSchema,
    ToolNeverListed,
    ListChangedSilently,
    SecretInError,
    HiddenCharacters,
    CursorInvented,
    CapabilitiesDisagree,
    InitializeRepeated,
    DiscoveryMissing,
    PromptNameOverlap,
    ResourceUriOverlap,
    ToolShadowed,
    NamesFoldTogether,
    NamesLookAlike,
    SeparatorsCollide,
    LabelRepeated,
    DescriptionNamesForeignTool,
    PrefixShared,
)
