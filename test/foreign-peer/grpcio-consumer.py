# A consumer of the first draft on stock gRPC for Python, which verifies the name in our certificate.
# Usage: grpcio-consumer.py HOST:PORT CERTIFICATE KEY OUR_ROOTS COUNT

import queue
import sys

import grpc

target = sys.argv[1]
certificate, key, roots = [open(path, "rb").read() for path in sys.argv[2:5]]
count = int(sys.argv[5])
URL = b"type.googleapis.com/federation.types.v1alpha1.FederatedService"
METHOD = "/federation.resourcediscovery.v1alpha1.DiscoveryService/EstablishStream"


def field(number, value):
    return bytes([number * 8 + 2, len(value)]) + value


def nonce_in(message):
    # Field 1 comes first if it is there.
    return message[2 : 2 + message[1]] if message[:1] == b"\x0a" else b""


requests = queue.Queue()
requests.put(field(1, URL))
channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(roots, key, certificate))
stream = channel.stream_stream(METHOD)(iter(requests.get, None), timeout=20)
for number, message in enumerate(stream, 1):
    requests.put(field(1, URL) + field(2, nonce_in(message)) + field(3, b""))
    if number == count:
        break
print("received %d" % count)
stream.cancel()
