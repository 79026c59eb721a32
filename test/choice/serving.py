# Servers of TCP that say at which of their addresses they were reached. Arguments: ports. Prints a line when all of them listen.
import select
import socket
import sys

BACKLOG = 4096

listening = select.epoll()
servers = {}
for port in map(int, sys.argv[1:]):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("0.0.0.0", port))
    server.listen(BACKLOG)
    server.setblocking(False)
    servers[server.fileno()] = server
    listening.register(server.fileno(), select.EPOLLIN)
print("ready", flush=True)
while True:
    for number, _ in listening.poll():
        try:
            while True:
                client, _ = servers[number].accept()
                try:
                    client.send(client.getsockname()[0].encode())
                except OSError:
                    pass
                client.close()
        except BlockingIOError:
            pass
        except OSError:
            pass
