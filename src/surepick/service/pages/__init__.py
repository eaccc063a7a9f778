"""The pages of the service: for judges and for the admin. They use the same API as everybody else.

Templates show what does not change while a page is open; small scripts without a framework do the rest. Nothing is
loaded from other servers, and no script or style stands inside a page, which the content policy would refuse.
"""

from surepick.service.pages.routes import install, sentence_page, wants_page

__all__ = ["install", "sentence_page", "wants_page"]
