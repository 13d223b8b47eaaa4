"""What the tests of the model draw from."""

from hypothesis import strategies as st

from frontdesk.model.platforms import Platform
from frontdesk.model.sources import ChatType, SessionSource

# Short texts over few characters, so that two of them are often equal or nearly so.
awkward_ids = st.text(alphabet="ab1.:/\\%@+\x00\x85\u2028é", max_size=5)
ids = awkward_ids | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
some_id = ids.filter(bool)
maybe_id = st.none() | ids
names = st.none() | st.text(max_size=12)
any_platform = st.sampled_from([Platform.TELEGRAM, Platform.WHATSAPP, Platform.SLACK, Platform.LOCAL])
any_chat_type = st.sampled_from(ChatType)
settings = st.fixed_dictionaries(
    {"group_sessions_per_user": st.booleans(), "thread_sessions_per_user": st.booleans()}
)
profiles = st.none() | st.sampled_from(["", "default", "main", "work"]) | ids


def sources(
    platform: st.SearchStrategy[Platform] = any_platform,
    chat_id: st.SearchStrategy[str] = ids,
    chat_type: st.SearchStrategy[ChatType] = any_chat_type,
) -> st.SearchStrategy[SessionSource]:
    return st.builds(
        SessionSource,
        platform=platform,
        chat_id=chat_id,
        chat_type=chat_type,
        chat_name=names,
        user_id=maybe_id,
        user_name=names,
        thread_id=maybe_id,
        chat_topic=names,
        user_id_alt=maybe_id,
        chat_id_alt=maybe_id,
        is_bot=st.booleans(),
        scope_id=maybe_id,
        guild_id=maybe_id,
        parent_chat_id=maybe_id,
        message_id=maybe_id,
        role_authorized=st.booleans(),
        profile=maybe_id,
        delivered_via_upstream_relay=st.booleans(),
        account=maybe_id,
    )
