#!/usr/bin/python3
"""LibreOffice edits a document of a server without locks, while another client edits the same one.

Usage: libreoffice.py IFMATCH. It starts nginx with dav-ext, the program IFMATCH in front of it, and LibreOffice without a
window, which it drives by UNO. Debian's Python has the module.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import uno
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException

DEADLINE_SECONDS = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, attempt):
    """Repeats an attempt until it returns something."""
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end:
        found = attempt()
        if found is not None:
            return found
        time.sleep(0.1)
    sys.exit(f"FAILED: waited too long for {what}")


def listening(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return None


def must(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print(f"ok: {what}")


@contextlib.contextmanager
def process(*command):
    # LibreOffice is a process behind another one.
    with subprocess.Popen(command, start_new_session=True) as running:
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGTERM)


def put(url, content):
    """Returns the status."""
    request = urllib.request.Request(url, data=content, method="PUT")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def nginx(directory, port):
    root = directory / "root"
    root.mkdir()
    file = directory / "nginx.conf"
    file.write_text(
        "load_module modules/ngx_http_dav_ext_module.so;\n"
        f"daemon off; master_process off; pid {directory}/pid;\nevents {{}}\n"
        f"http {{ log_format line '$request_method $uri $status'; access_log {directory}/access.log line;\n"
        f"client_body_temp_path {directory}/body;\nserver {{ listen 127.0.0.1:{port}; root {root};\n"
        "dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS; } }\n"
    )
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    return process(program, "-p", "/usr/share/nginx", "-e", "stderr", "-c", str(file))


def ifmatch(program, directory, port, upstream):
    example = pathlib.Path(__file__).parents[2] / "config" / "webdav.toml"
    text = example.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    file = directory / "ifmatch.toml"
    file.write_text(text.replace("127.0.0.1:9000", f"127.0.0.1:{upstream}"))
    return process(program, "run", str(file))


def desktop(port):
    """Returns the desktop of the LibreOffice that listens here."""
    resolver = uno.getComponentContext().ServiceManager.createInstance("com.sun.star.bridge.UnoUrlResolver")
    place = f"uno:socket,host=127.0.0.1,port={port};urp;StarOffice.ComponentContext"

    def connect():
        with contextlib.suppress(NoConnectException):
            return resolver.resolve(place)
        return None

    context = until("LibreOffice", connect)
    return context.ServiceManager.createInstanceWithContext("com.sun.star.frame.Desktop", context)


def hidden():
    return PropertyValue("Hidden", 0, True, 0)


def edit(desktop, directory, url):
    first = directory / "first.odt"
    document = desktop.loadComponentFromURL("private:factory/swriter", "_blank", 0, (hidden(),))
    document.Text.setString("one")
    document.storeToURL(first.as_uri(), (PropertyValue("FilterName", 0, "writer8", 0),))
    document.close(True)
    must(put(url, first.read_bytes()) == 201, "the first state is stored")
    document = desktop.loadComponentFromURL(url, "_blank", 0, (hidden(),))
    must(document.Text.getString() == "one" and not document.isReadonly(), "LibreOffice opens the document for editing")
    must(put(url, b"of another client") == 423, "another client is refused with 423")
    document.Text.setString("two")
    document.store()
    must(not document.isModified(), "LibreOffice saves")
    must(put(url, b"of another client") == 423, "the document stays locked")
    document.close(True)
    document = desktop.loadComponentFromURL(url, "_blank", 0, (hidden(), PropertyValue("ReadOnly", 0, True, 0)))
    must(document.Text.getString() == "two", "the server has what LibreOffice has saved")
    document.close(True)
    until("the end of the lock", lambda: put(url, b"of another client") in (201, 204) or None)
    print("ok: the other client writes once LibreOffice has closed the document")


def main():
    program = sys.argv[1]
    backend, front, office = free_port(), free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        profile, accept = (directory / "profile").as_uri(), f"--accept=socket,host=127.0.0.1,port={office};urp;"
        with (
            nginx(directory, backend),
            ifmatch(program, directory, front, backend),
            process("soffice", "--headless", "--norestore", "--nologo", accept,
                    f"-env:UserInstallation={profile}"),
        ):
            until("nginx", lambda: listening(backend))
            until("ifmatch", lambda: listening(front))
            running = desktop(office)
            edit(running, directory, f"http://127.0.0.1:{front}/report.odt")
            reached = (directory / "access.log").read_text()
            must("LOCK" not in reached, "no lock reaches the server")
            with contextlib.suppress(Exception):
                running.terminate()


main()
