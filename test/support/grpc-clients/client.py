# A gRPC client in Python that resolves its target by xDS. For each number it reads it makes that many calls and prints how many
# were answered by whom. A `!` behind the number: calls that do not wait for a connection. Behind a space: another target, and how
# many calls are under way at a time (one if nothing is said).
import asyncio
import json
import sys

import grpc


async def call(who, waits):
    try:
        return (await who(b"", timeout=15, wait_for_ready=waits)).decode()
    except grpc.RpcError as error:
        return "error: " + error.details()


async def calls(who, number, lanes):
    counts = {}
    left = int(number.rstrip("!"))

    async def lane():
        nonlocal left
        while left > 0:
            left -= 1
            name = await call(who, not number.endswith("!"))
            counts[name] = counts.get(name, 0) + 1

    await asyncio.gather(*[lane() for _ in range(lanes)])
    return counts


async def main():
    target, channel, who = sys.argv[1], None, None
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        number, *more = line.split()
        wanted = more[0] if more else target
        if channel is None or wanted != target:
            if channel is not None:
                await channel.close()
            target, channel = wanted, grpc.aio.insecure_channel(wanted)
            who = channel.unary_unary("/test.Who/Am", request_serializer=None, response_deserializer=None)
        counts = await calls(who, number, int(more[1]) if len(more) > 1 else 1)
        print(json.dumps(counts), flush=True)


asyncio.run(main())
