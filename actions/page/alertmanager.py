"""Pages as alerts of an Alertmanager, through its API v2. Called by the chain."""

import json
from dataclasses import dataclass
from datetime import timedelta

from actions.hands import Page
from actions.page import messages
from actions.page.backends import Accepted, MaybeAccepted, Secrets
from actions.page.post import Answer, Endpoint, post
from config.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerPager:
    """One Alertmanager; `endpoint.url` is its address without /api/v2."""

    name: str
    endpoint: Endpoint
    secrets: Secrets
    clock: Clock

    def page(self, page: Page, limit: timedelta) -> Accepted:
        """Fire or resolve the alert. Raises NotAccepted, MaybeAccepted."""
        target = Endpoint(
            url=f"{self.endpoint.url.rstrip('/')}/api/v2/alerts", token=self.endpoint.token
        )
        body = messages.alerts(page, self.clock.now().wall)
        answer = post(target, body, self.secrets, limit)
        if not _its_own(answer):
            # A login page of a proxy also says 200; taking it for a page would wake nobody.
            raise MaybeAccepted(
                f"HTTP {answer.status} with a body that no Alertmanager sends: "
                "is something else at this address?"
            )
        return Accepted(detail=f"alert {'resolved' if page.resolved else 'taken over'}")


def _its_own(answer: Answer) -> bool:
    """Alertmanager answers with nothing, or with JSON."""
    if not answer.body:
        return True
    try:
        json.loads(answer.body)
    except ValueError:
        return False
    return answer.whole
