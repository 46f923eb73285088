"""Documents as applications of Flask and Django keep them, or files of WsgiDAV, or objects of moto.

Usage: documents.py flask|django|wsgidav|moto HOST PORT DIRECTORY

/docs/ID and /document?doc_id=ID are one document. A POST to /docs names it in its body: the member or parameter `sku`.
"""

import sys

from cheroot.wsgi import Server

documents = {}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "MERGE", "LINK"]


def act(method, name, body):
    """What a method does to a document: the status, and the text of the answer."""
    if name is None:
        return 404, ""
    if method in ("GET", "HEAD"):
        return (200, documents[name]) if name in documents else (404, "")
    if method == "DELETE":
        return (204, "") if documents.pop(name, None) is not None else (404, "")
    if method != "OPTIONS":
        documents[name] = body
    return 204, ""


def flask():
    from flask import Flask, request

    app = Flask("documents")

    def answer(name, body):
        status, text = act(request.method, name, body)
        return text, status, {"Content-Type": "text/plain"}

    @app.route("/docs/<name>", methods=METHODS, strict_slashes=False)
    def item(name):
        return answer(name, request.get_data(as_text=True))

    @app.route("/document", methods=METHODS, strict_slashes=False)
    def by_query():
        return answer(request.args.get("doc_id"), request.get_data(as_text=True))

    @app.route("/docs", methods=["GET", "POST", "PUT"], strict_slashes=False)
    def collection():
        if request.method not in ("POST", "PUT"):
            return "a list"
        sent = request.get_json(silent=True)
        sent = sent if isinstance(sent, dict) else request.form
        return answer(str(sent["sku"]) if "sku" in sent else None, str(sent.get("v")))

    return overriding(app)


def overriding(app):
    """The usual snippet for clients that can send GET and POST alone."""

    def wrapped(environ, start_response):
        named = environ.get("HTTP_X_HTTP_METHOD_OVERRIDE", "").upper()
        if named in METHODS:
            environ["REQUEST_METHOD"] = named
        # The values that ProxyFix, and frameworks behind a prefix, take from the fields of a gateway.
        environ["SCRIPT_NAME"] = environ.get("HTTP_X_FORWARDED_PREFIX", "")
        return app(environ, start_response)

    return wrapped


def django():
    import django.conf
    from django.core.wsgi import get_wsgi_application
    from django.http import HttpResponse
    from django.urls import path

    def answer(request, name, body):
        status, text = act(request.method, name, body)
        return HttpResponse(text, status=status, content_type="text/plain")

    def item(request, name):
        return answer(request, name, request.body.decode("utf-8", "replace"))

    def by_query(request):
        return answer(request, request.GET.get("doc_id"), request.body.decode("utf-8", "replace"))

    def collection(request):
        import json

        if request.method not in ("POST", "PUT"):
            return HttpResponse("a list")
        try:
            sent = json.loads(request.body) if "json" in (request.content_type or "") else request.POST
        except ValueError:
            sent = {}
        sent = {} if isinstance(sent, list) else sent
        name = sent.get("sku") if hasattr(sent, "get") else None
        return answer(request, name if name is None else str(name), str(hasattr(sent, "get") and sent.get("v")))

    patterns = [path("docs/<name>", item), path("docs/<name>/", item), path("document", by_query), path("docs", collection)]
    django.conf.settings.configure(
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=tuple(patterns),
        MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
        SECRET_KEY="of a test",
        LOGGING_CONFIG=None,
    )
    return get_wsgi_application()


def wsgidav(directory):
    from wsgidav.wsgidav_app import WsgiDAVApp

    anonymous = {"simple_dc": {"user_mapping": {"*": True}}}
    return WsgiDAVApp({"provider_mapping": {"/": directory}, "verbose": 0, "logging": {"enable": False}, **anonymous})


def moto():
    from moto.moto_server.werkzeug_app import create_backend_app

    return create_backend_app("s3")


kind, host, port, directory = sys.argv[1:]
made = {"flask": flask, "django": django, "wsgidav": lambda: wsgidav(directory), "moto": moto}[kind]()
Server((host, int(port)), made, numthreads=8, request_queue_size=128).start()
