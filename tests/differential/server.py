"""Tells what Python's http.server reads. Usage: server.py HOST PORT"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.tell
        raise AttributeError(name)

    def body(self):
        # http.server leaves bodies to its handlers.
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().strip(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def tell(self):
        body = self.body().decode("latin-1")
        told = {"method": self.command, "target": self.path, "fields": self.headers.items(), "body": body}
        told = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
