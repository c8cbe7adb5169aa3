"""The loop of a daemon like benchmarkai's metrics-pusher with its backend for standard output: reads JSON lines from a pipe until the last
writer has closed it, and logs each event with labels.

    pusher.py PIPE"""

import json
import logging
import sys

LABELS = {"task_name": "train"}


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s: %(message)s", stream=sys.stdout)
    log = logging.getLogger("pusher")
    with open(sys.argv[1], encoding="utf-8") as pipe:
        for line in pipe:
            event = json.loads(line)
            event["labels"] = LABELS
            log.info(json.dumps(event))


main()
