"""What somebody writes in Python and throws away: csv.DictReader and requests, a push a file.

script_csv.py URL FOLDER
"""
import csv
import os
import sys

import requests

BATCH_POINTS = 10_000


def payload(groups):
    return [
        {"sourceSerialNumber": serial, "mappingConfig": config, "data": data}
        for (serial, config), data in groups.items()
    ]


def push_file(session, url, path):
    groups, points = {}, 0
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            key = (row["source_serial_number"], row["mapping_config"])
            groups.setdefault(key, []).append({"date": row["date"], "value": float(row["value"])})
            points += 1
            if points >= BATCH_POINTS:
                session.post(url, json=payload(groups)).raise_for_status()
                groups, points = {}, 0
    if points:
        session.post(url, json=payload(groups)).raise_for_status()


with requests.Session() as session:
    for name in sorted(os.listdir(sys.argv[2])):
        push_file(session, sys.argv[1] + "/push/api/data", os.path.join(sys.argv[2], name))
