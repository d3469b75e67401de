"""A JSON service and its client, talking over 127.0.0.1."""

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STOCK = {"apple": 4, "pear": 0}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rpartition("/")[2]
        if name in STOCK:
            self.reply(200, {"name": name, "count": STOCK[name]})
        else:
            self.reply(404, {"error": f"no {name}"})

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        STOCK[order["name"]] = STOCK.get(order["name"], 0) + order["count"]
        self.reply(201, STOCK)

    def reply(self, status, body):
        data = json.dumps(body, sort_keys=True).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def fetch(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(url, data, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}/stock"
    print(fetch(f"{base}/apple"))
    print(fetch(f"{base}/plum"))
    print(fetch(base, {"name": "plum", "count": 3}))
    print(fetch(f"{base}/plum"))
    server.shutdown()
    server.server_close()


main()
