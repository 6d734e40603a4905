"""Requests of a bundle to the API server, as the service account of its pod."""
import json
import os
import pathlib
import ssl
import urllib.request

ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")


def request(method, path, body, kind="application/json"):
    """Sends body, an object, to a path such as /api/v1/namespaces. Fails with urllib.error.HTTPError."""
    server = "https://{}:{}".format(os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
    headers = {"Authorization": "Bearer " + (ACCOUNT / "token").read_text(), "Content-Type": kind}
    call = urllib.request.Request(server + path, json.dumps(body).encode(), headers, method=method)
    context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(call, context=context, timeout=60) as response:
        return json.load(response)


def annotate(key, value):
    """Sets an annotation of the pod, which the broker reads."""
    path = "/api/v1/namespaces/{POD_NAMESPACE}/pods/{POD_NAME}".format(**os.environ)
    request("PATCH", path, {"metadata": {"annotations": {key: value}}}, "application/merge-patch+json")
