"""What to do about each of Slack's refusals (slack.md, appendix). Pure."""

from enum import StrEnum


class Course(StrEnum):
    """The way on after `ok: false`."""

    LATER = "later"
    """Slack's own trouble: the same again, after a pause."""
    ELSEWHERE = "elsewhere"
    """Not in this channel: the next one."""
    AGAIN = "again"
    """The message is gone: post it anew."""
    PLAINLY = "plainly"
    """Our blocks are wrong: the text without them, and a line in the log."""
    DIRECTLY = "directly"
    """The person is not in the channel: a direct message."""
    STOP = "stop"
    """The token or the app is not in order: nothing goes until an admin has put it right."""
    GIVE_UP = "give up"
    """Nothing helps."""


SHARED = "shared_with_another_workspace"
"""Our own word: Slack would take the message, and another company would read it."""
_COURSES = {
    Course.LATER: "internal_error fatal_error service_unavailable request_timeout team_added_to_org "
    "org_login_required http_error",
    Course.ELSEWHERE: f"{SHARED} channel_not_found not_in_channel is_archived is_inactive user_disabled "
    "messages_tab_disabled user_not_found user_not_visible cannot_dm_bot",
    Course.AGAIN: "message_not_found cant_update_message edit_window_closed thread_not_found",
    Course.PLAINLY: "invalid_blocks invalid_blocks_format msg_blocks_too_long msg_too_long no_text "
    "block_mismatch invalid_attachments",
    Course.DIRECTLY: "user_not_in_channel cannot_reply_to_message",
    Course.STOP: "invalid_auth not_authed token_revoked token_expired account_inactive missing_scope "
    "not_allowed_token_type no_permission ekm_access_denied",
}
_BY_ERROR = {error: course for course, errors in _COURSES.items() for error in errors.split()}


def course(error: str) -> Course:
    """The course for this error."""
    if error.startswith("restricted_action"):
        return Course.ELSEWHERE
    return _BY_ERROR.get(error, Course.GIVE_UP)
