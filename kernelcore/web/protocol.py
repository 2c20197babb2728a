"""HTTP connections with time limits, so that silent clients do not use up all connections."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""Time to send the headers of a request, from the connection or the last answer on."""
REQUEST_SECONDS = 120.0
"""Time from the headers of a request to the end of its answer: upload, search and download."""


class TimeLimitedProtocol(H11Protocol):
    """The HTTP/1.1 protocol of uvicorn, which by itself waits for clients without a limit."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._close_after(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        if self._limit is not None:
            self._limit.cancel()

    def handle_events(self) -> None:
        """Read what came; complete headers begin a request."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._close_after(REQUEST_SECONDS)

    def on_response_complete(self) -> None:
        """Begin to wait for the headers of the next request."""
        answered = self.cycle
        super().on_response_complete()  # may begin a request that waited behind this one
        if self.cycle is answered:
            self._close_after(HEADER_SECONDS)

    def _close_after(self, seconds: float) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = self.loop.call_later(seconds, self.transport.abort)
