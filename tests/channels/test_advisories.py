"""Advisories and complaints about the channels of other projects, each with the test that holds.

The first column is the advisory's number, or the project's abbreviation and the number of the
thread: OC OpenClaw, HA Hermes Agent, NC NanoClaw, TA TinyAGI.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SUITE = "channels/conformance"
FETCHING, LISTENER = "channels/test_fetching.py", "channels/test_listener.py"
OUTGOING = "channels/test_outgoing_files.py"
OURS = f"{SUITE}/test_advisories.py"

HELD: tuple[tuple[str, str, str], ...] = (
    (
        "CVE-2026-28480",
        "channels/telegram/test_updates.py",
        "test_cve_2026_28480_a_person_is_a_number_and_never_a_name",
    ),
    (
        "CVE-2026-28392, Slack 2026.4.14",
        f"{SUITE}/test_access.py",
        "test_cve_2026_28392_every_way_in_has_the_same_decision",
    ),
    (
        "CVE-2026-26319, GHSA-xh72-v6v9-mwhc",
        LISTENER,
        "test_cve_2026_26319_a_blank_secret_stops_the_start",
    ),
    (
        "CVE-2026-28465",
        LISTENER,
        "test_cve_2026_28465_signatures_are_checked_against_the_configured_url",
    ),
    (
        "CVE-2026-32980",
        LISTENER,
        "test_cve_2026_32980_headers_are_checked_before_the_body_is_read",
    ),
    (
        "CVE-2026-32980, size",
        LISTENER,
        "test_cve_2026_32980_a_body_over_64_kib_is_refused_whatever_it_announces",
    ),
    (
        "CVE-2026-32980, time",
        LISTENER,
        "test_cve_2026_32980_a_request_that_does_not_arrive_in_time_is_cut",
    ),
    (
        "CVE-2026-32053, Telnyx replay",
        "channels/twilio/test_receiving.py",
        "test_cve_2026_32053_a_redelivery_has_the_same_identity",
    ),
    (
        "CVE-2026-28467",
        FETCHING,
        "test_cve_2026_28467_the_connection_goes_to_the_address_that_was_checked",
    ),
    (
        "CVE-2026-27488",
        FETCHING,
        "test_cve_2026_27488_each_redirect_is_checked_like_the_first_address",
    ),
    (
        "CVE-2026-26322",
        FETCHING,
        "test_cve_2026_26322_a_host_that_resolves_to_a_private_address_is_not_reached",
    ),
    ("CVE-2026-34504", FETCHING, "test_cve_2026_34504_a_chain_of_redirects_ends"),
    (
        "CVE-2026-34504, other clients",
        OURS,
        "test_every_fetch_goes_through_one_client_whose_address_is_checked",
    ),
    (
        "GHSA-pg2v-8xwh-qhcc",
        FETCHING,
        "test_ghsa_pg2v_8xwh_qhcc_credentials_stay_with_the_first_host",
    ),
    (
        "CVE-2026-44996, GHSA-hr5v-j9h9-xjhg, GHSA-33hm-cq8r-wc49, GHSA-jhpv-5j76-m56h, "
        "CVE-2026-28482",
        OUTGOING,
        "test_a_path_that_leads_elsewhere_is_checked_when_it_is_opened",
    ),
    (
        "CVE-2026-7875",
        OUTGOING,
        "test_cve_2026_7875_what_replaced_a_file_since_the_lease_is_not_sent",
    ),
    (
        "GHSA-2xcp-x87w-q377",
        OURS,
        "test_ghsa_2xcp_x87w_q377_nobody_chooses_the_session_of_somebody_else",
    ),
    (
        "GHSA-2gvc-4f3c-2855",
        OURS,
        "test_ghsa_2gvc_4f3c_2855_a_tier_from_a_direct_chat_opens_no_group",
    ),
    ("CVE-2026-2577", OURS, "test_cve_2026_2577_nothing_listens_but_on_loopback"),
    ("nanobot allowFrom", OURS, "test_nanobot_an_empty_list_of_people_lets_nobody_in"),
    (
        "CVE-2026-9350",
        OURS,
        "test_cve_2026_9350_what_catch_up_finds_is_authorised_like_live_messages",
    ),
    (
        "CVE-2026-14626",
        f"{SUITE}/test_sizes.py",
        "test_cve_2026_14626_a_text_that_is_too_long_is_refused_in_words",
    ),
    ("CVE-2026-7396", OURS, "test_cve_2026_7396_the_name_of_a_file_leads_nowhere"),
    ("NemoClaw #3729", OURS, "test_nemoclaw_3729_whoami_names_what_decides_about_a_person"),
    (
        "OC #106562, AI-Employee #372",
        "channels/telegram/test_failures.py",
        "test_oc_106562_the_token_is_in_no_error_and_in_no_log",
    ),
    (
        "OC #39138",
        OURS,
        "test_oc_39138_responses_that_are_out_of_date_are_not_sent_at_the_start",
    ),
    (
        "OC #24353",
        "channels/telegram/test_failures.py",
        "test_oc_24353_a_text_that_is_too_long_is_refused_and_not_tried_for_ever",
    ),
    (
        "OC #34039",
        OURS,
        "test_oc_34039_a_message_that_comes_again_during_and_after_its_run_runs_once",
    ),
    (
        "HA #91969",
        f"{SUITE}/test_absence.py",
        "test_ha_91969_a_wait_of_97_minutes_holds_up_one_chat_and_is_written_in_its_row",
    ),
    (
        "HA #64238",
        f"{SUITE}/test_outgoing.py",
        "test_ha_64238_part_one_is_not_sent_again_when_part_two_fails",
    ),
    (
        "NC #2423",
        OURS,
        "test_nc_2423_a_delivery_that_failed_for_good_is_an_event_with_its_reason",
    ),
    ("NC #2902", OURS, "test_nc_2902_what_leads_to_no_run_is_answered_at_once"),
    ("NC #2796, #2797", OURS, "test_nc_2796_one_response_that_cannot_be_read_stops_no_other"),
    (
        "NC #2796, in",
        f"{SUITE}/test_intake.py",
        "test_what_one_payload_breaks_does_not_stop_the_next",
    ),
    (
        "OC #17847",
        "channels/on_slack/test_slack_receiving.py",
        "test_oc_17847_connections_that_bring_nothing_are_no_proof",
    ),
    (
        "OC #128809",
        "channels/discord/test_receiving.py",
        "test_oc_128809_a_connection_without_events_is_found_out",
    ),
    (
        "OC #64664, #44721",
        OURS,
        "test_oc_44721_a_button_runs_the_offer_that_it_stands_below",
    ),
    (
        "OC #53120",
        OURS,
        "test_oc_53120_a_code_of_pairing_outlives_a_restart_and_expires_to_no",
    ),
    ("OC #55549", OURS, "test_oc_55549_a_code_names_one_person_and_a_member_cannot_use_it"),
    (
        "OC #56051",
        f"{SUITE}/test_accounts.py",
        "test_oc_56051_the_account_that_was_asked_answers_with_its_own_agent",
    ),
    (
        "OC #28479",
        f"{SUITE}/test_accounts.py",
        "test_oc_28479_a_tier_and_a_failure_of_one_account_are_not_those_of_the_other",
    ),
    ("TA A5", "api/test_pairing.py", "test_a_request_can_be_dismissed"),
    (
        "TA A6",
        "api/test_pairing.py",
        "test_nobody_without_the_scope_admin_sees_codes_or_decides",
    ),
    (
        "TA C1",
        OURS,
        "test_c1_a_response_that_comes_while_others_are_sent_is_sent_without_a_wait",
    ),
    ("TA C2", OURS, "test_c2_nothing_is_acked_that_the_platform_did_not_take"),
    (
        "TA C3",
        f"{SUITE}/test_outgoing.py",
        "test_ha_64238_part_one_is_not_sent_again_when_part_two_fails",
    ),
    (
        "TA C4",
        f"{SUITE}/test_intake.py",
        "test_messages_wait_while_the_database_is_busy_and_none_is_lost",
    ),
    (
        "TA C6",
        f"{SUITE}/test_files.py",
        "test_c6_the_files_of_an_unpaired_sender_are_never_fetched",
    ),
    (
        "TA C7",
        "channels/text/test_render.py",
        "test_an_answer_that_the_parser_fails_on_is_delivered_as_plain_text",
    ),
    (
        "TA C8",
        f"{SUITE}/test_sizes.py",
        "test_a_file_that_is_too_large_for_the_platform_is_said_in_words",
    ),
    (
        "TA C10",
        OURS,
        "test_c10_what_only_the_owner_may_do_is_refused_to_everyone_else",
    ),
)


@cache
def defined_in(path: str) -> frozenset[str]:
    """The tests that a file defines."""
    tree = ast.parse((TESTS / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, functions))


@pytest.mark.parametrize(("advisory", "path", "name"), HELD, ids=[each[0] for each in HELD])
def test_every_advisory_has_a_test_that_is_still_there(advisory: str, path: str, name: str) -> None:
    assert name in defined_in(path), f"the test for {advisory} is gone from {path}"
