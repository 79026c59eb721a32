# An owner of the first draft on stock gRPC for Python, with the ping policy that gRPC has by default: it waits for an
# answer before it sends the next service. Messages come from the test, one in base64 on each line of a file.
# Usage: grpcio-owner.py CERTIFICATE KEY CLIENT_ROOTS MESSAGES

import base64
import queue
import sys
import threading
from concurrent import futures

import grpc

certificate, key, roots, messages = [open(path, "rb").read() for path in sys.argv[1:5]]
services = [base64.b64decode(line) for line in messages.split()]
METHOD = "/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream"


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def establish(requests, context):
    answers = queue.Queue()

    def read():
        try:
            for _ in requests:
                answers.put("answer")
        except Exception:
            pass
        answers.put(None)

    threading.Thread(target=read, daemon=True).start()
    say("stream")
    answers.get()
    for service in services:
        yield service
        if answers.get() is None:
            return
    say("synced")
    while answers.get() is not None:
        pass


class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method != METHOD:
            return None
        return grpc.stream_stream_rpc_method_handler(establish)


server = grpc.server(futures.ThreadPoolExecutor(max_workers=8), handlers=[Handler()])
credentials = grpc.ssl_server_credentials([(key, certificate)], roots, True)
say("port %d" % server.add_secure_port("127.0.0.1:0", credentials))
server.start()
server.wait_for_termination()
