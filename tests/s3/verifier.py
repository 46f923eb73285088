"""Lets those requests through to an S3 server whose signature holds; the server itself does not look.

    verifier.py ADDRESS SERVER          both as host:port

The signature is made anew, by the library of AWS, of what has arrived.
"""

import http.client
import http.server
import re
import sys

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SECRETS = {"S3RVER": "S3RVER"}
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/[^/]+/([^/]+)/s3/aws4_request, *SignedHeaders=([^,]+), *Signature=([0-9a-f]+)"
)
REFUSAL = b"<Error><Code>SignatureDoesNotMatch</Code><Message>It does not.</Message></Error>"


def holds(method, target, fields):
    """Whether the signature of a request holds."""
    parts = AUTHORIZATION.fullmatch(fields.get("Authorization", ""))
    if parts is None or parts[1] not in SECRETS:
        return False
    key, region, names, signature = parts.groups()
    request = AWSRequest(method=method, url=f"http://{fields['Host']}{target}")
    for name in names.split(";"):
        if name not in fields:
            return False
        request.headers[name] = fields[name]
    request.context["timestamp"] = fields["X-Amz-Date"]
    signer = S3SigV4Auth(Credentials(key, SECRETS[key]), "s3", region)
    return signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request) == signature


class Verifier(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not holds(self.command, self.path, self.headers):
            return self.answer(403, [("Content-Type", "application/xml")], REFUSAL, len(REFUSAL))
        server = http.client.HTTPConnection(sys.argv[2])
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            server.putheader(name, value)
        server.endheaders(body)
        response = server.getresponse()
        content = response.read()
        fields = [field for field in response.getheaders() if field[0].lower() not in self.FRAMING]
        length = response.getheader("Content-Length") if self.command == "HEAD" else len(content)
        self.answer(response.status, fields, content, length)

    FRAMING = {"connection", "keep-alive", "transfer-encoding", "content-length"}
    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request

    def answer(self, status, fields, content, length):
        self.send_response_only(status)
        for name, value in fields:
            self.send_header(name, value)
        if status not in (204, 304) and length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


host, port = sys.argv[1].split(":")
http.server.ThreadingHTTPServer((host, int(port)), Verifier).serve_forever()
