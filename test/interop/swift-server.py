"""OpenStack Swift with its S3 interface in one process, on the loopback address: swift.py FOLDER PORT."""
import array
import os
import sys

import eventlet

eventlet.monkey_patch()

from eventlet import wsgi
from swift.common import utils
from swift.common.ring import RingData

folder, port = sys.argv[1], int(sys.argv[2])
utils.HASH_PATH_SUFFIX = b"of-tests"
logger = utils.get_logger({"log_level": "ERROR"}, log_to_console=True)

from paste.deploy import loadapp  # noqa: E402 (the suffix is read when modules are loaded)

PROXY = """[DEFAULT]
swift_dir = %(folder)s
log_level = ERROR
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats s3api tempauth copy slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
paste.filter_factory = cache:filter_factory
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
user_test_reader = reading
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
"""

STORAGE = """[DEFAULT]
devices = %(folder)s
swift_dir = %(folder)s
mount_check = false
log_level = ERROR
[app:main]
use = egg:swift#%(kind)s
"""


class Cache:
    """In the place of memcached, for which Swift asks by the environment of a request."""

    def __init__(self, app):
        self.app = app
        self.entries = {}

    def __call__(self, environ, start_response):
        environ["swift.cache"] = self
        return self.app(environ, start_response)

    def get(self, key, **_more):
        return self.entries.get(key)

    def set(self, key, value, **_more):
        self.entries[key] = value

    def incr(self, key, delta=1, **_more):
        self.entries[key] = int(self.entries.get(key, 0)) + delta
        return self.entries[key]

    def delete(self, key, **_more):
        self.entries.pop(key, None)


def filter_factory(_settings, **_local):
    return Cache


def write(name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def serve(socket, config):
    app = loadapp("config:" + config)
    eventlet.spawn(wsgi.server, socket, app, logger, log_output=False, max_size=200)


def main():
    sys.modules["cache"] = sys.modules["__main__"]
    os.makedirs(os.path.join(folder, "disk"), exist_ok=True)
    for kind in ("account", "container", "object"):
        socket = eventlet.listen(("127.0.0.1", 0))
        device = {"id": 0, "region": 1, "zone": 1, "weight": 1, "device": "disk"}
        device.update(ip="127.0.0.1", port=socket.getsockname()[1])
        device.update(replication_ip=device["ip"], replication_port=device["port"])
        RingData([array.array("H", [0, 0])], [device], 31).save(os.path.join(folder, kind + ".ring.gz"))
        serve(socket, write(kind + ".conf", STORAGE % {"folder": folder, "kind": kind}))
    serve(eventlet.listen(("127.0.0.1", port)), write("proxy.conf", PROXY % {"folder": folder}))
    while True:
        eventlet.sleep(3600)


main()
