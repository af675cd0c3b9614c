"""A proxy before PostgreSQL that counts round trips and can lose an answer."""

from __future__ import annotations

import contextlib
import socket
import threading


class Wire:
    """Listens on loopback and passes everything on to a server.

    Attributes:
        round_trips: How often the server answered something that a client had sent.
    """

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.round_trips = 0
        self._answers_to_lose = 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next_answer(self) -> None:
        """Let the server do what it is asked next, and cut the line before it can say so."""
        self._answers_to_lose = 1

    def close(self) -> None:
        """Cut every line."""
        for each in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._sockets += [client, server]
                asked = threading.Event()
                threading.Thread(target=self._ask, args=(client, server, asked), daemon=True).start()
                threading.Thread(target=self._answer, args=(client, server, asked), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, asked: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                asked.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _answer(self, client: socket.socket, server: socket.socket, asked: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if asked.is_set():
                    asked.clear()
                    self.round_trips += 1
                    if self._answers_to_lose:
                        self._answers_to_lose -= 1
                        break
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
