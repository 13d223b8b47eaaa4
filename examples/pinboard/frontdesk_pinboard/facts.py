from frontdesk.model.platforms import PlatformFacts

FACTS = PlatformFacts(notes=lambda context: f"Everybody reads what stands on {context.source.chat_id}.")
