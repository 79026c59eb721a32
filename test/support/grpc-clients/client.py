# A gRPC client in Python that resolves its target by xDS. For each number it reads it makes that many calls, one after the
# other, and prints how many were answered by whom. A `!` behind the number: calls that do not wait for a connection.
import json
import sys

import grpc

channel = grpc.insecure_channel(sys.argv[1])
who = channel.unary_unary("/test.Who/Am", request_serializer=None, response_deserializer=None)


def call(waits):
    try:
        return who(b"", timeout=15, wait_for_ready=waits).decode()
    except grpc.RpcError as error:
        return "error: " + error.details()


for line in sys.stdin:
    counts = {}
    for _ in range(int(line.rstrip("!\n"))):
        name = call(not line.rstrip().endswith("!"))
        counts[name] = counts.get(name, 0) + 1
    print(json.dumps(counts), flush=True)
