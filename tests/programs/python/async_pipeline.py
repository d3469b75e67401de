"""Producers and consumers over an asyncio queue."""

import asyncio


async def produce(queue, start, stop):
    for number in range(start, stop):
        await queue.put(number)
        await asyncio.sleep(0)


async def consume(queue, squares):
    while True:
        number = await queue.get()
        squares[number] = number * number
        queue.task_done()


async def main():
    queue = asyncio.Queue(maxsize=4)
    squares = {}
    consumers = [asyncio.create_task(consume(queue, squares)) for _ in range(3)]
    await asyncio.gather(produce(queue, 0, 10), produce(queue, 10, 20))
    await queue.join()
    for consumer in consumers:
        consumer.cancel()
    results = await asyncio.gather(*consumers, return_exceptions=True)

    print("squares:", len(squares), "sum:", sum(squares.values()))
    print("cancelled:", sum(isinstance(r, asyncio.CancelledError) for r in results))
    try:
        await asyncio.wait_for(asyncio.sleep(5), timeout=0.01)
    except asyncio.TimeoutError:
        print("gave up waiting")


asyncio.run(main())
