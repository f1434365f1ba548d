"""Pages to any receiver of Alertmanager's webhook format 4. Called by the chain."""

from dataclasses import dataclass
from datetime import timedelta

from actions.hands import Page
from actions.page import messages
from actions.page.backends import Accepted, Secrets
from actions.page.post import Endpoint, post
from config.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPager:
    """One webhook."""

    name: str
    endpoint: Endpoint
    secrets: Secrets
    clock: Clock

    def page(self, page: Page, limit: timedelta) -> Accepted:
        """Post it. Raises NotAccepted, MaybeAccepted."""
        body = messages.webhook(page, self.clock.now().wall)
        answer = post(self.endpoint, body, self.secrets, limit)
        return Accepted(detail=f"HTTP {answer.status}")
